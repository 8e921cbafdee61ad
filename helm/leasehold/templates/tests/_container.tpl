{{- define "leasehold.testContainer" -}}
{{ include "leasehold.container" . }}
env:
  - name: LEASEHOLD_ADDRESS
    value: http://{{ include "leasehold.address" . }}
  - name: LEASEHOLD_CALLER
    value: helm-test
resources:
  {{- toYaml .Values.test.resources | nindent 2 }}
{{- end -}}
