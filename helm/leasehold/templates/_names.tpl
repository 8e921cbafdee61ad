{{- define "leasehold.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 letters, so that what is added still makes a name. */}}
{{- define "leasehold.fullname" -}}
{{- $name := include "leasehold.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What finds the broker's pods, and no other pod of the release. It never changes. */}}
{{- define "leasehold.selector" -}}
app.kubernetes.io/name: {{ include "leasehold.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: broker
{{- end -}}

{{/* Labels of an object: list of the root and its component. */}}
{{- define "leasehold.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "leasehold.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: leasehold
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "leasehold.serviceAccount" -}}
{{- $made := include "leasehold.fullname" . -}}
{{- default (ternary $made "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "leasehold.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.claim" -}}
{{- default (printf "%s-data" (include "leasehold.fullname" .)) .Values.persistence.existingClaim -}}
{{- end -}}

{{/* Where the broker is called from within the cluster. */}}
{{- define "leasehold.address" -}}
{{ include "leasehold.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end -}}

{{/* The pod's port that others call. */}}
{{- define "leasehold.podPort" -}}
{{ ternary .Values.tls.sidecarPort .Values.ports.grpc (eq .Values.tls.mode "sidecar") | int }}
{{- end -}}

{{/* gRPC's port of a Service: list of the root and its number. */}}
{{- define "leasehold.grpcPort" -}}
{{- $number := index . 1 -}}
{{- with index . 0 -}}
- name: grpc
  port: {{ $number }}
  {{- if eq .Values.tls.mode "sidecar" }}
  targetPort: {{ int .Values.tls.sidecarPort }}
  appProtocol: https
  {{- else }}
  targetPort: grpc
  {{- with .Values.service.appProtocol }}
  appProtocol: {{ . }}
  {{- end }}
  {{- end }}
{{- end -}}
{{- end -}}
