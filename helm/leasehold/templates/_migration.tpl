{{/* The Job's specification: list of the root and the ConfigMap's name. */}}
{{- define "leasehold.migration" -}}
{{- $root := index . 0 -}}
{{- with $root -}}
backoffLimit: {{ int .Values.migrations.backoffLimit }}
activeDeadlineSeconds: {{ int .Values.migrations.activeDeadlineSeconds }}
template:
  metadata:
    {{- include "leasehold.endingPod" (list . "migration" .Values.migrations) | nindent 4 }}
  spec:
    serviceAccountName: {{ default (include "leasehold.serviceAccount" .) .Values.migrations.serviceAccountName }}
    {{- include "leasehold.pod" . | nindent 4 }}
    restartPolicy: Never
    {{- with .Values.migrations.initContainers }}
    initContainers:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
      - name: migrate
        {{- include "leasehold.container" . | nindent 8 }}
        args: [migrate, up, --config, /etc/leasehold/config/leasehold.toml]
        {{- with .Values.extraEnv }}
        env:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        resources:
          {{- toYaml .Values.migrations.resources | nindent 10 }}
        volumeMounts:
          {{- include "leasehold.mounts" . | nindent 10 }}
          {{- with .Values.extraVolumeMounts }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
    volumes:
      {{- $secret := ternary .Values.migrations.existingSecret .Values.database.existingSecret (ne .Values.migrations.existingSecret.name "") }}
      {{- include "leasehold.volumes" (list . (index $ 1) $secret) | nindent 6 }}
      {{- with .Values.extraVolumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end -}}
{{- end -}}
