package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"
)

// live configures live video over WebRTC. The media goes directly to the realtime tasks, over UDP and TCP on one
// port, because a load balancer would only add delay.
type live struct {
	On bool
	// TURN lists relay URLs. TURNSecret is the ARN of the secret that the relays share with tasks.
	TURN       []string
	TURNSecret string
}

const livePort = 8082

func (r *reader) live() live {
	return live{
		On:   r.oneOf("webrtc", "false", "false", "true") == "true",
		TURN: r.list("turn", ""),
		TURNSecret: r.pattern("turnSecret", "", `^arn:[a-z-]+:secretsmanager:`,
			"the ARN of a secret"),
	}
}

var turnURL = regexp.MustCompile(`^turns?:[A-Za-z0-9.-]+(:[0-9]{1,5})?(\?transport=(udp|tcp))?$`)

func (r *reader) liveRelations(o options) {
	for _, url := range o.Live.TURN {
		if !turnURL.MatchString(url) {
			r.fail("turn", "URLs such as turns:turn.example.com:443?transport=tcp, not %q", url)
		}
	}
	r.reject(o.Live.On && !o.Realtime, "webrtc", "requires realtime=true")
	r.reject(!o.Live.On && (len(o.Live.TURN) > 0 || o.Live.TURNSecret != ""), "webrtc", "must be true with turn or turnSecret")
	r.reject((len(o.Live.TURN) > 0) != (o.Live.TURNSecret != ""), "turn", "and turnSecret must be set together")
}

func (l live) environment(values map[string]*string) {
	if !l.On {
		return
	}
	values["CUTROOM_RTC_ADDR"] = jsii.String(":" + strconv.Itoa(livePort))
	values["CUTROOM_RTC_PUBLIC"] = jsii.String("ecs")
	values["CUTROOM_PEER_ADDR"] = jsii.String(":0")
	if len(l.TURN) > 0 {
		values["CUTROOM_RTC_TURN"] = jsii.String(strings.Join(l.TURN, ","))
		values["CUTROOM_RTC_TURN_SECRET_ARN"] = jsii.String(l.TURNSecret)
	}
}

// serveLive returns the permissions for programs to find their public address and create relay credentials.
func (s *stack) serveLive() []permission {
	var may []permission
	if s.Live.On {
		may = append(may, permission{
			actions: []string{"ec2:DescribeNetworkInterfaces"}, resources: []*string{jsii.String("*")},
			why: "AWS cannot limit this action to an interface. A task only reads its own public address.",
		})
	}
	if s.Live.TURNSecret != "" {
		may = append(may, permission{
			actions: []string{"secretsmanager:GetSecretValue"}, resources: []*string{jsii.String(s.Live.TURNSecret)},
		})
	}
	return may
}

// openLive opens the ports for live video to the internet. It also lets the tasks reach each other, because signaling
// for a room may arrive at a task that does not run the room.
func openLive(group awsec2.SecurityGroup, port int) {
	group.AddIngressRule(group, awsec2.Port_Tcp(jsii.Number(port)), jsii.String("Signaling that tasks forward"), nil)
	for _, from := range []awsec2.IPeer{awsec2.Peer_AnyIpv4(), awsec2.Peer_AnyIpv6()} {
		for _, at := range []awsec2.Port{awsec2.Port_Udp(jsii.Number(livePort)), awsec2.Port_Tcp(jsii.Number(livePort))} {
			group.AddIngressRule(from, at, jsii.String("Media of live video"), nil)
		}
	}
	suppress(group, "AwsSolutions-EC23", "Media goes from anywhere to the session's task, which responds only to holders "+
		"of the room's credentials.")
}
