{{- define "leasehold.embedded" -}}
{{- if eq .Values.database.mode "embedded" }}true{{ end -}}
{{- end -}}

{{/* Whether something else decides how many replicas there are. */}}
{{- define "leasehold.scaled" -}}
{{- if or .Values.autoscaling.enabled .Values.keda.scaledObject.enabled }}true{{ end -}}
{{- end -}}

{{- define "leasehold.replicas" -}}
{{- if eq (toString .Values.replicas) "<nil>" -}}
{{ ternary 1 2 (eq .Values.database.mode "embedded") }}
{{- else -}}
{{ int .Values.replicas }}
{{- end -}}
{{- end -}}

{{/* The fewest replicas that there may be. */}}
{{- define "leasehold.fewest" -}}
{{- if .Values.autoscaling.enabled -}}
{{ int .Values.autoscaling.minReplicas }}
{{- else if .Values.keda.scaledObject.enabled -}}
{{ int .Values.keda.scaledObject.minReplicas }}
{{- else -}}
{{ include "leasehold.replicas" . }}
{{- end -}}
{{- end -}}

{{/* The drain's longest time in whole seconds; the broker's default where nobody says anything. */}}
{{- define "leasehold.drainSeconds" -}}
{{- $text := dig "server" "drain_timeout" "" .Values.config | default "25s" -}}
{{- $number := regexFind "^[0-9]+" $text | int -}}
{{- $unit := regexFind "[a-z]+$" $text -}}
{{- if eq $unit "ms" -}}
{{ div (add $number 999) 1000 }}
{{- else -}}
{{ mul $number (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit | default 1) }}
{{- end -}}
{{- end -}}

{{- define "leasehold.graceSeconds" -}}
{{- if eq (toString .Values.terminationGracePeriodSeconds) "<nil>" -}}
{{ add .Values.preStopSeconds (include "leasehold.drainSeconds" .) 10 }}
{{- else -}}
{{ int .Values.terminationGracePeriodSeconds }}
{{- end -}}
{{- end -}}

{{- define "leasehold.readinessProtocol" -}}
{{- if eq .Values.probes.readinessProtocol "auto" -}}
{{ ternary "grpc" "http" (eq .Values.tls.mode "none") }}
{{- else -}}
{{ .Values.probes.readinessProtocol }}
{{- end -}}
{{- end -}}
