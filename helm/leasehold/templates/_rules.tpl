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
{{- if has .name $names -}}
{{- $faults = append $faults (printf "keda.workers: two of them are called %s" .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\nthe values of %s have %d fault%s:\n  %s\n" .Release.Name (len $faults) (ternary "" "s" (eq (len $faults) 1)) (join "\n  " $faults)) -}}
{{- end -}}
{{- end -}}
