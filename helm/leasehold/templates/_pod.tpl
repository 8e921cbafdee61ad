{{/* What pods of the chart have in common. */}}
{{- define "leasehold.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of pods that come to an end: list of the root, the component and what is given for these pods.
A mesh's sidecar that is an ordinary container goes on for ever, and its pod with it. */}}
{{- define "leasehold.endingPod" -}}
{{- $root := index . 0 -}}
{{- $given := index . 2 -}}
{{- $labels := dict -}}
{{- $annotations := dict -}}
{{- if and (eq $root.Values.tls.mode "mesh") (not $root.Values.tls.nativeSidecars) -}}
{{- $labels = dict "sidecar.istio.io/inject" "false" -}}
{{- $annotations = dict "sidecar.istio.io/inject" "false" "linkerd.io/inject" "disabled" -}}
{{- end -}}
{{- $labels = merge (dict) $given.podLabels $labels $root.Values.podLabels -}}
{{- $annotations = merge (dict) $given.podAnnotations $annotations $root.Values.podAnnotations -}}
labels:
  {{- include "leasehold.labels" (list $root (index . 1)) | nindent 2 }}
  {{- with $labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What containers of the chart have in common. */}}
{{- define "leasehold.container" -}}
image: {{ include "leasehold.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end -}}

{{/* Mounts of a process that reads the broker's file. */}}
{{- define "leasehold.mounts" -}}
- name: config
  mountPath: /etc/leasehold/config
  readOnly: true
{{- if include "leasehold.embedded" . }}
- name: data
  mountPath: /var/lib/leasehold
{{- else }}
- name: database
  mountPath: /etc/leasehold/database
  readOnly: true
{{- end }}
{{- end -}}

{{/* Their volumes: list of the root, the ConfigMap's name and the Secret with the database's URL. */}}
{{- define "leasehold.volumes" -}}
{{- $root := index . 0 -}}
{{- $secret := index . 2 -}}
- name: config
  configMap:
    name: {{ index . 1 }}
{{- if include "leasehold.embedded" $root }}
- name: data
  persistentVolumeClaim:
    claimName: {{ include "leasehold.claim" $root }}
{{- else }}
- name: database
  secret:
    secretName: {{ $secret.name }}
    # the file's group is the pod's fsGroup
    defaultMode: 0440
    items:
      - key: {{ $secret.key | quote }}
        path: url
{{- end }}
{{- end -}}
