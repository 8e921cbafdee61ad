{{/* An option of the broker's file. What is null is left to the broker. A text of JSON is one of TOML as well. */}}
{{- define "leasehold.option" -}}
{{- if ne (toString (index . 1)) "<nil>" }}
{{ index . 0 }} = {{ index . 1 | toJson }}
{{- end }}
{{- end -}}

{{/* The broker's file. */}}
{{- define "leasehold.config" -}}
{{- $all := ternary "[::]" "0.0.0.0" (eq .Values.ports.address "::") -}}
listen = "{{ ternary "127.0.0.1" $all (eq .Values.tls.mode "sidecar") }}:{{ int .Values.ports.grpc }}"
http_listen = "{{ $all }}:{{ int .Values.ports.http }}"
insecure_plaintext = true
{{- if include "leasehold.embedded" . }}
data_dir = "/var/lib/leasehold"
{{- else }}
database_url_file = "/etc/leasehold/database/url"
migrate = {{ eq .Values.migrations.mode "startup" }}
{{- end }}
{{- range $name, $value := .Values.config }}
{{- if not (kindIs "map" $value) }}
{{- include "leasehold.option" (list $name $value) }}
{{- end }}
{{- end }}
{{- range $section, $options := .Values.config }}
{{- if kindIs "map" $options }}

[{{ $section }}]
{{- range $name, $value := $options }}
{{- if not (kindIs "map" $value) }}
{{- include "leasehold.option" (list $name $value) }}
{{- end }}
{{- end }}
{{- range $name, $value := $options }}
{{- if kindIs "map" $value }}

[{{ $section }}.{{ toJson $name }}]
{{- range $option, $given := $value }}
{{- include "leasehold.option" (list $option $given) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
