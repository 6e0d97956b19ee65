package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"
)

// newRealtime runs the container service for realtime sessions if the options ask for it. A session
// is one connection and stays with its task.
func (s *stack) newRealtime(media awsapigateway.RestApi) {
	if !s.Realtime {
		return
	}
	// The page for trying sessions calls the media API.
	if s.Endpoint == "" {
		s.mediaURL = s.urlOf(media, s.Media)
	}
	s.newBalanced(balanced{
		container: container{
			name: "realtime", program: "realtime", image: s.RealtimeImage,
			cpu: 1024, memory: 2048, disk: 21, port: 8080, grace: 120,
			environment: []string{
				"CUTROOM_CREDENTIALS_TABLE", "CUTROOM_SESSIONS_TABLE", "CUTROOM_FILES_TABLE", "CUTROOM_USAGE_TABLE",
				"CUTROOM_BUCKET", "CUTROOM_CORS_ORIGINS",
				"CUTROOM_RTC_ADDR", "CUTROOM_RTC_PUBLIC", "CUTROOM_RTC_TURN", "CUTROOM_RTC_TURN_SECRET_ARN",
				"CUTROOM_PEER_ADDR", "CUTROOM_PUBLIC_URL",
			},
			may: append(s.serveLive(),
				s.onTable("credentials", "GetItem"), s.onTable("usage", "UpdateItem", "Query", "DeleteItem"),
				s.onTable("sessions", "BatchGetItem", "UpdateItem", "ConditionCheckItem"),
				s.onTable("files", "GetItem"), s.onBlobs("files/", "GetObject"), s.reportMissing(),
			),
			live: s.Live.On,
		},
		domain: s.RealtimeDomain, idle: 120, tasks: s.RealtimeTasks,
	})
	s.output("RealtimeUrl", "URL of the realtime sessions", jsii.String("wss://"+s.RealtimeDomain.Name+"/v1/stream"))
}
