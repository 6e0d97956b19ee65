// Package functions lists the Lambda functions of the service. Each is a program in the folder of
// the same name. The deployment and the tests read this list.
package functions

import "slices"

type Function struct {
	// Name is the name of the folder and the program. A deployment adds a prefix that includes its stage.
	Name string
	// Variables lists the function's environment variables. It omits the common ones: the stage, the family, the
	// catalog, the tiers, tracing and, for functions, CUTROOM_RESPONSE. A variable without a value is omitted.
	Variables []string
	// Streams reports whether the function streams its responses if streaming is on.
	Streams bool
}

// An alarm counts these log messages of the function reaper.
const (
	JobGivenUp  = "a queue has given up on a job"
	JobNotEnded = "cannot end an abandoned job"
)

func All() []Function {
	callers := []string{"CUTROOM_CREDENTIALS_TABLE", "CUTROOM_USAGE_TABLE", "CUTROOM_CORS_ORIGINS"}
	submits := slices.Concat(callers, []string{
		"CUTROOM_JOBS_TABLE", "CUTROOM_FILES_TABLE", "CUTROOM_BUCKET", "CUTROOM_STATE_MACHINE", "CUTROOM_VIDEO_QUEUE",
		"CUTROOM_IMAGE_QUEUE", "CUTROOM_MAX_UPLOAD", "CUTROOM_WORKERS", "CUTROOM_WAKE_FUNCTION",
	})
	workers := []string{
		"CUTROOM_JOBS_TABLE", "CUTROOM_CLUSTER", "CUTROOM_WORKER_SERVICE", "CUTROOM_VIDEO_QUEUE", "CUTROOM_IMAGE_QUEUE",
		"CUTROOM_WORKER_MIN", "CUTROOM_WORKER_MAX", "CUTROOM_WORKER_BACKLOG", "CUTROOM_WORKER_IDLE",
	}
	with := func(variables []string, more ...string) []string { return slices.Concat(variables, more) }
	return []Function{
		{Name: "jobs", Variables: with(submits, "CUTROOM_SECRET_ARN", "CUTROOM_WEBHOOK_ALLOW")},
		{
			Name: "content", Streams: true,
			Variables: with(callers, "CUTROOM_JOBS_TABLE", "CUTROOM_FILES_TABLE", "CUTROOM_BUCKET", "CUTROOM_CONTENT_REDIRECT",
				"CUTROOM_PUBLIC_S3_URL", "CUTROOM_SECRET_ARN"),
		},
		{
			Name:      "c2pa",
			Variables: with(callers, "CUTROOM_JOBS_TABLE", "CUTROOM_FILES_TABLE", "CUTROOM_BUCKET"),
		},
		{Name: "images", Streams: true, Variables: with(submits, "CUTROOM_SECRET_ARN")},
		{
			Name: "files",
			Variables: with(callers, "CUTROOM_FILES_TABLE", "CUTROOM_BUCKET", "CUTROOM_SECRET_ARN", "CUTROOM_MAX_UPLOAD",
				"CUTROOM_PUBLIC_S3_URL"),
		},
		{Name: "tokens", Variables: with(callers, "CUTROOM_SECRET_ARN", "CUTROOM_WEBHOOK_ALLOW")},
		{
			Name:      "models",
			Variables: []string{"CUTROOM_CORS_ORIGINS", "CUTROOM_ENGINE", "CUTROOM_MAX_UPLOAD", "CUTROOM_PUBLIC_INFERENCE_URL"},
		},
		{Name: "quota", Variables: with(callers, "CUTROOM_SESSIONS_TABLE")},
		{Name: "inference", Streams: true, Variables: callers},
		{
			Name: "batches", Streams: true,
			Variables: with(callers, "CUTROOM_FILES_TABLE", "CUTROOM_BUCKET", "CUTROOM_STEPS_FUNCTION", "CUTROOM_MAX_UPLOAD",
				"CUTROOM_PUBLIC_S3_URL"),
		},
		{Name: "steps", Variables: with(callers, "CUTROOM_FILES_TABLE", "CUTROOM_BUCKET", "CUTROOM_STEPS_FUNCTION")},
		{Name: "reaper", Variables: []string{"CUTROOM_JOBS_TABLE"}},
		{Name: "arrived", Variables: []string{"CUTROOM_FILES_TABLE", "CUTROOM_BUCKET"}},
		{Name: "expiry", Variables: []string{"CUTROOM_FILES_TABLE", "CUTROOM_BUCKET"}},
		{
			Name: "webhooks",
			Variables: []string{
				"CUTROOM_JOBS_TABLE", "CUTROOM_USAGE_TABLE", "CUTROOM_WEBHOOK_QUEUE", "CUTROOM_WEBHOOK_ALLOW", "CUTROOM_SECRET_ARN",
			},
		},
		{Name: "wake", Variables: workers},
		{Name: "scale", Variables: workers},
	}
}

func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

func Find(name string) (Function, bool) {
	all := All()
	i := slices.IndexFunc(all, func(f Function) bool { return f.Name == name })
	if i < 0 {
		return Function{}, false
	}
	return all[i], true
}
