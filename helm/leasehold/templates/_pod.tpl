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
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
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
