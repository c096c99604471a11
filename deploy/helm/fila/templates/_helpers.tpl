{{- define "fila.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "fila.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fila.labels" -}}
{{ include "fila.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "fila.keySecret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-auth" (include "fila.name" .)) }}
{{- end }}

{{- /* A kubelet shows no certificate: where one is asked for, that the port accepts has to do. */ -}}
{{- define "fila.probe" -}}
{{- if and .tls.enabled .tls.clientCaSecret -}}
tcpSocket: {port: fila}
{{- else -}}
httpGet: {path: {{ .path }}, port: http{{ if .tls.enabled }}, scheme: HTTPS{{ end }}}
{{- end }}
{{- end }}

{{- /* What cannot work is refused before anything is installed. */ -}}
{{- define "fila.check" -}}
{{- if .Values.cluster.enabled }}{{ fail "cluster.enabled: this release has no cluster mode; leave it false" }}{{ end }}
{{- if gt (int .Values.replicaCount) 1 }}{{ fail "replicaCount: without cluster.enabled every replica is a broker of its own; use 1" }}{{ end }}
{{- if and .Values.tls.enabled (not .Values.tls.certSecret) }}{{ fail "tls.certSecret: name the secret with the broker's certificate" }}{{ end }}
{{- if and .Values.telemetry.enabled (not .Values.telemetry.otlpEndpoint) }}{{ fail "telemetry.otlpEndpoint: say where the collector is" }}{{ end }}
{{- end }}
