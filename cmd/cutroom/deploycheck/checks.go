package deploycheck

import (
	"slices"
	"time"
)

// The log groups that several checks lead to.
const (
	jobsLog      = "/aws/lambda/cutroom-STAGE-jobs"
	inferenceLog = "/aws/lambda/cutroom-STAGE-inference"
	webhooksLog  = "/aws/lambda/cutroom-STAGE-webhooks"
	accessLog    = "/cutroom/STAGE/media-access"
	workerLog    = "/cutroom/STAGE/worker"
)

// checks are in the order in which they are done. What only cold workers show comes
// first, and alarms come last: they would tell of what the checks themselves broke.
func checks() []check {
	return slices.Concat(workerChecks(), mediaChecks(), gatewayChecks(), looks())
}

// workerChecks are about workers that start, and about the routes.
func workerChecks() []check {
	const noFleet = "runs no containers by itself"
	return []check{
		{
			name: "job", limit: 12 * time.Minute, runbook: "video-queue-age", group: workerLog, run: checkJob,
		},
		{
			name: "wake", limit: time.Minute, runbook: "video-queue-age", group: "/aws/lambda/cutroom-STAGE-wake",
			needs: noFleet, run: checkWake,
		},
		{
			name: "lost-worker", limit: 12 * time.Minute, runbook: "video-queue-age", group: workerLog,
			needs: noFleet, run: checkLostWorker,
		},
		{
			name: "image", limit: 12 * time.Minute, runbook: "image-queue-age",
			group: "/aws/lambda/cutroom-STAGE-images", run: checkImage,
		},
		{name: "routes", limit: 10 * time.Minute, runbook: "media-errors", group: accessLog, run: checkRoutes},
		{
			name: "gateway-answers", limit: 2 * time.Minute, runbook: "media-errors", group: accessLog,
			needs: "gives bodies of its own for unknown routes and too large bodies", run: checkAnswers,
		},
		{name: "preflight", limit: time.Minute, runbook: "media-errors", group: accessLog, run: checkPreflight},
	}
}

// mediaChecks are about jobs, files and their bytes.
func mediaChecks() []check {
	return []check{
		{name: "failure", limit: 11 * time.Minute, runbook: "failed-executions", group: workerLog, run: checkFailure},
		{
			name: "timeout", limit: 2 * time.Minute, runbook: "failed-executions", group: "/aws/lambda/cutroom-STAGE-reaper",
			needs: "does not time executions by their input", run: checkTimeout,
		},
		{name: "cancel", limit: 2 * time.Minute, runbook: "failed-executions", group: jobsLog, run: checkCancel},
		{name: "content", limit: 12 * time.Minute, runbook: "media-errors", group: "/aws/lambda/cutroom-STAGE-content", run: checkContent},
		{name: "upload", limit: 15 * time.Minute, runbook: "internal-errors", group: "/aws/lambda/cutroom-STAGE-arrived",
			run: checkUpload},
		{name: "form-upload", limit: 2 * time.Minute, runbook: "media-errors", group: "/aws/lambda/cutroom-STAGE-files", run: checkFormUpload},
		{
			name: "fairness", limit: 12 * time.Minute, runbook: "video-queue-age", group: workerLog,
			needs: "serves queues in order, not fairly", run: checkFairness,
		},
	}
}

// gatewayChecks are about the inference gateway, webhooks and sessions.
func gatewayChecks() []check {
	return []check{
		{name: "chat", limit: 3 * time.Minute, runbook: "inference-errors", group: inferenceLog, run: checkChat},
		{
			name: "stream", limit: 15 * time.Minute, runbook: "inference-errors", group: inferenceLog,
			needs: "buffers every answer", run: checkStream,
		},
		{name: "usage", limit: 2 * time.Minute, runbook: "table-throttles", group: inferenceLog, run: checkUsage},
		{
			name: "webhook-retry", limit: 12 * time.Minute, runbook: "webhook-dead-letters",
			group: webhooksLog, run: checkWebhookRetry,
		},
		{
			name: "webhook", limit: 12 * time.Minute, runbook: "webhook-dead-letters",
			group: webhooksLog, run: checkWebhook,
		},
		{
			name: "realtime", limit: time.Minute, runbook: "media-errors", group: "/cutroom/STAGE/realtime",
			run: checkRealtime,
		},
		{
			name: "live-video", limit: 2 * time.Minute, runbook: "live-video-without-media",
			group: "/cutroom/STAGE/realtime", run: checkLive,
		},
	}
}

// looks are at what the other checks leave behind, and at the alarms.
func looks() []check {
	const noAlarms = "has no alarms"
	return []check{
		{
			name: "tables", limit: time.Minute, runbook: "table-throttles", group: "",
			needs: "leaves the lifetimes of items out when it makes a table of a template", run: checkTables,
		},
		{name: "lifetimes", limit: time.Minute, runbook: "table-throttles", group: jobsLog, run: checkLifetimes},
		{
			name: "dead-letters", limit: time.Minute, runbook: "dead-letters", group: "/aws/lambda/cutroom-STAGE-reaper",
			run: checkDeadLetters,
		},
		{name: "alarms", limit: time.Minute, runbook: "alarms", group: "", needs: noAlarms, run: checkAlarms},
		{name: "alarm-fires", limit: 15 * time.Minute, runbook: "alarms", group: "", needs: noAlarms, run: checkAlarmFires},
	}
}
