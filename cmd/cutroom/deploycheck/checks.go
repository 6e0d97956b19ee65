package deploycheck

import "time"

// checks are in the order in which they are done. What only cold workers show comes
// first, and alarms come last: they would tell of what the checks themselves broke.
func checks() []check {
	const jobs, worker = "/aws/lambda/cutroom-STAGE-jobs", "/cutroom/STAGE/worker"
	const content, files = "/aws/lambda/cutroom-STAGE-content", "/aws/lambda/cutroom-STAGE-files"
	const inference, access = "/aws/lambda/cutroom-STAGE-inference", "/cutroom/STAGE/media-access"
	const noFleet = "runs no containers by itself"
	return []check{
		{
			name: "job", limit: 12 * time.Minute, runbook: "video-queue-age", group: worker, run: checkJob,
		},
		{
			name: "wake", limit: time.Minute, runbook: "video-queue-age", group: "/aws/lambda/cutroom-STAGE-wake",
			needs: noFleet, run: checkWake,
		},
		{
			name: "image", limit: 12 * time.Minute, runbook: "image-queue-age",
			group: "/aws/lambda/cutroom-STAGE-images", run: checkImage,
		},
		{name: "routes", limit: 10 * time.Minute, runbook: "media-errors", group: access, run: checkRoutes},
		{
			name: "gateway-answers", limit: 2 * time.Minute, runbook: "media-errors", group: access,
			needs: "gives bodies of its own for unknown routes and too large bodies", run: checkAnswers,
		},
		{name: "preflight", limit: time.Minute, runbook: "media-errors", group: access, run: checkPreflight},
		{name: "failure", limit: 11 * time.Minute, runbook: "failed-executions", group: worker, run: checkFailure},
		{name: "cancel", limit: 2 * time.Minute, runbook: "failed-executions", group: jobs, run: checkCancel},
		{name: "content", limit: 12 * time.Minute, runbook: "media-errors", group: content, run: checkContent},
		{name: "upload", limit: 15 * time.Minute, runbook: "internal-errors", group: "/aws/lambda/cutroom-STAGE-arrived",
			run: checkUpload},
		{name: "form-upload", limit: 2 * time.Minute, runbook: "media-errors", group: files, run: checkFormUpload},
		{
			name: "fairness", limit: 12 * time.Minute, runbook: "video-queue-age", group: worker,
			needs: "serves queues in order, not fairly", run: checkFairness,
		},
		{name: "chat", limit: 3 * time.Minute, runbook: "inference-errors", group: inference, run: checkChat},
		{
			name: "stream", limit: 15 * time.Minute, runbook: "inference-errors", group: inference,
			needs: "buffers every answer", run: checkStream,
		},
		{name: "usage", limit: 2 * time.Minute, runbook: "table-throttles", group: inference, run: checkUsage},
		{
			name: "webhook-retry", limit: 12 * time.Minute, runbook: "webhook-dead-letters",
			group: "/aws/lambda/cutroom-STAGE-webhooks", run: checkWebhookRetry,
		},
		{
			name: "webhook", limit: 12 * time.Minute, runbook: "webhook-dead-letters",
			group: "/aws/lambda/cutroom-STAGE-webhooks", run: checkWebhook,
		},
		{
			name: "realtime", limit: time.Minute, runbook: "media-errors", group: "/cutroom/STAGE/realtime",
			run: checkRealtime,
		},
		{
			name: "tables", limit: time.Minute, runbook: "table-throttles", group: "",
			needs: "leaves the lifetimes of items out when it makes a table of a template", run: checkTables,
		},
		{name: "lifetimes", limit: time.Minute, runbook: "table-throttles", group: jobs, run: checkLifetimes},
		{
			name: "dead-letters", limit: time.Minute, runbook: "dead-letters", group: "/aws/lambda/cutroom-STAGE-reaper",
			run: checkDeadLetters,
		},
		{name: "alarms", limit: time.Minute, runbook: "alarms", group: "", needs: "has no alarms", run: checkAlarms},
	}
}
