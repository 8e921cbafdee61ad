{{/* What makes no sense together. All of it is told at once. */}}
{{- define "leasehold.rules" -}}
{{- $faults := list -}}
{{- $fullname := include "leasehold.fullname" . -}}
{{- $embedded := include "leasehold.embedded" . -}}
{{- if and (not $embedded) (not .Values.database.existingSecret.name) -}}
{{- $faults = append $faults (printf "database.existingSecret.name: name the Secret that holds the database's URL, such as that of: kubectl create secret generic %s-database --namespace %s --from-literal=%s=postgres://…; or try the embedded database: database.mode=embedded" $fullname .Release.Namespace .Values.database.existingSecret.key) -}}
{{- end -}}
{{- if and $embedded (gt (include "leasehold.replicas" . | int) 1) -}}
{{- $faults = append $faults "replicas: the embedded database serves one replica; leave replicas out, or use an external database" -}}
{{- end -}}
{{- if and $embedded (include "leasehold.scaled" .) -}}
{{- $faults = append $faults "autoscaling, keda.scaledObject: the embedded database serves one replica; use an external database" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled .Values.keda.scaledObject.enabled -}}
{{- $faults = append $faults "autoscaling.enabled, keda.scaledObject.enabled: both would scale the same pods; enable one" -}}
{{- end -}}
{{- range $name, $bounds := dict "autoscaling" .Values.autoscaling "keda.scaledObject" .Values.keda.scaledObject -}}
{{- if and $bounds.enabled (gt (int $bounds.minReplicas) (int $bounds.maxReplicas)) -}}
{{- $faults = append $faults (printf "%s: minReplicas must not be larger than maxReplicas" $name) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $fullname) -}}
{{- $faults = append $faults (printf "fullnameOverride: Services' names are small letters, digits and dashes, beginning with a letter, and %s is none; give another name here" $fullname) -}}
{{- end -}}
{{- if and (not $embedded) .Values.networkPolicy.enabled .Values.networkPolicy.restrictEgress (not .Values.networkPolicy.egress) -}}
{{- $faults = append $faults "networkPolicy.egress: with restrictEgress, a rule for the database is needed, which is out of reach without one" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.grpcRoute.enabled (not .Values.networkPolicy.gatewayFrom) -}}
{{- $faults = append $faults "networkPolicy.gatewayFrom: say where the pods of grpcRoute's gateway run, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: envoy-gateway-system}}}]; they are not let through otherwise" -}}
{{- end -}}
{{- if and .Values.migrations.existingSecret.name (or $embedded (ne .Values.migrations.mode "job")) -}}
{{- $faults = append $faults "migrations.existingSecret: the Job alone uses it; leave it out, or let the Job migrate: migrations.mode=job" -}}
{{- end -}}
{{- $kept := list "LEASEHOLD_LISTEN" "LEASEHOLD_HTTP_LISTEN" "LEASEHOLD_DATA_DIR" "LEASEHOLD_DATABASE_URL" "LEASEHOLD_DATABASE_URL_FILE" "LEASEHOLD_MIGRATE" "LEASEHOLD_INSECURE_PLAINTEXT" "LEASEHOLD_CONFIG" -}}
{{- range .Values.extraEnv -}}
{{- if has .name $kept -}}
{{- $faults = append $faults (printf "extraEnv: %s is set by the chart, by ports, database, persistence, tls and migrations" .name) -}}
{{- else if eq .name "LEASEHOLD_SERVER_DRAIN_TIMEOUT" -}}
{{- $faults = append $faults "extraEnv: give LEASEHOLD_SERVER_DRAIN_TIMEOUT as config.server.drain_timeout, which the grace period has to be longer than" -}}
{{- end -}}
{{- end -}}
{{- $least := add .Values.preStopSeconds (include "leasehold.drainSeconds" .) 5 | int -}}
{{- if le (include "leasehold.graceSeconds" . | int) $least -}}
{{- $faults = append $faults (printf "terminationGracePeriodSeconds: must be more than %d: preStopSeconds, config.server.drain_timeout and 5 s; or leave it out" $least) -}}
{{- end -}}
{{- if eq (int .Values.ports.grpc) (int .Values.ports.http) -}}
{{- $faults = append $faults "ports: grpc and http must be different" -}}
{{- end -}}
{{- if eq (int .Values.service.port) (int .Values.service.httpPort) -}}
{{- $faults = append $faults "service: port and httpPort must be different" -}}
{{- end -}}
{{- if and (eq .Values.tls.mode "sidecar") (not .Values.extraContainers) -}}
{{- $faults = append $faults "tls.mode: a sidecar needs extraContainers with one that takes TLS at tls.sidecarPort and passes it to the broker at 127.0.0.1" -}}
{{- end -}}
{{- if and (eq .Values.probes.readinessProtocol "grpc") (eq .Values.tls.mode "sidecar") -}}
{{- $faults = append $faults "probes.readinessProtocol: gRPC is on the loopback address alone, where a probe does not come; use http" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- $faults = append $faults "serviceMonitor.enabled, podMonitor.enabled: both would count everything twice; enable one" -}}
{{- end -}}
{{- if and .Values.grpcRoute.enabled (not .Values.grpcRoute.parentRefs) -}}
{{- $faults = append $faults "grpcRoute.parentRefs: name the gateway that it belongs to" -}}
{{- end -}}
{{- if and .Values.grpcRoute.envoyGateway.enabled (not .Values.grpcRoute.enabled) -}}
{{- $faults = append $faults "grpcRoute.envoyGateway.enabled: needs grpcRoute.enabled" -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.keda.workers -}}
{{- if and (eq .name $fullname) $.Values.keda.scaledObject.enabled -}}
{{- $faults = append $faults (printf "keda.workers: %s is the name of the broker's own ScaledObject" .name) -}}
{{- end -}}
{{- if and .maxReplicas (gt (default 0 .minReplicas | int) (int .maxReplicas)) -}}
{{- $faults = append $faults (printf "keda.workers: %s has a larger minReplicas than maxReplicas" .name) -}}
{{- end -}}
{{- if has .name $names -}}
{{- $faults = append $faults (printf "keda.workers: two of them are called %s" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\nthe values of %s have %d fault%s:\n  %s\n" .Release.Name (len $faults) (ternary "" "s" (eq (len $faults) 1)) (join "\n  " $faults)) -}}
{{- end -}}
{{- end -}}
