{{- define "leasehold.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 letters, so that what is added still makes a name. Services' names have no dots, though releases' may. */}}
{{- define "leasehold.fullname" -}}
{{- $name := include "leasehold.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- $full | replace "." "-" | trunc 50 | trimAll "-" -}}
{{- end -}}

{{/* What finds the broker's pods, and no other pod of the release. It never changes. */}}
{{- define "leasehold.selector" -}}
app.kubernetes.io/name: {{ include "leasehold.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: broker
{{- end -}}

{{/* Labels of an object: list of the root and its component. */}}
{{- define "leasehold.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "leasehold.name" $root | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
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

{{/* Which families of addresses a Service has; the cluster's choice where nothing is said. */}}
{{- define "leasehold.families" -}}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
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
