package main

import "slices"

// newIngest runs the media service in containers if the options ask for it. The containers then serve the media
// URL, for existing clients that post bodies larger than API Gateway and Lambda accept.
func (s *stack) newIngest() {
	if s.Ingest != "fargate" {
		return
	}
	s.newBalanced(balanced{
		container: container{
			name: "media", program: "media", image: s.IngestImage,
			cpu: 1024, memory: 2048, disk: 21, port: 8080, grace: 120,
			environment: []string{
				"CUTROOM_CREDENTIALS_TABLE", "CUTROOM_USAGE_TABLE", "CUTROOM_JOBS_TABLE", "CUTROOM_FILES_TABLE",
				"CUTROOM_SESSIONS_TABLE",
				"CUTROOM_BUCKET", "CUTROOM_STATE_MACHINE", "CUTROOM_VIDEO_QUEUE", "CUTROOM_IMAGE_QUEUE", "CUTROOM_SECRET_ARN",
				"CUTROOM_MAX_UPLOAD", "CUTROOM_CORS_ORIGINS", "CUTROOM_WAKE_FUNCTION", "CUTROOM_WORKERS",
				"CUTROOM_CONTENT_REDIRECT", "CUTROOM_WEBHOOK_ALLOW",
				"CUTROOM_PUBLIC_INFERENCE_URL", "CUTROOM_ENGINE", tracingVariable,
			},
			may: slices.Concat(s.authenticate(), s.submitJobs(), s.listJobs(), s.keepFiles(), s.keepKeys(),
				[]permission{s.onBlobs("thumbnails/", "GetObject")}, s.readSessions(), s.sendTraces()),
		},
		// The timeout is long because the synchronous video routes send nothing for up to 270 s.
		domain: s.Media, idle: 300, tasks: s.IngestTasks,
	})
}
