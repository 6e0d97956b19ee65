package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
)

type services struct {
	*testing.T
	made    template
	account *iamtest.Account
	resolve func(any) (any, error)
	// asked counts the permission checks by kind.
	asked map[string]int
}

func (m template) services(t *testing.T) services {
	t.Helper()
	text, err := json.Marshal(m.ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	resolve, err := iamtest.Resolver(text, awstest.Here)
	if err != nil {
		t.Fatal(err)
	}
	account, err := iamtest.NewAccount(awstest.Here, m.rights(t))
	if err != nil {
		t.Fatal(err)
	}
	return services{t, m, account, resolve, map[string]int{}}
}

// text returns a template value as it would be after deployment.
func (s services) text(value any) string {
	s.Helper()
	resolved, err := s.resolve(value)
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprint(resolved)
}

func (s services) by(kind string, do func(id string, properties map[string]any)) {
	for id, r := range s.made.resources {
		if r.Type == kind {
			do(id, r.Properties)
		}
	}
}

func (s services) policy(document any) iamtest.Policy {
	s.Helper()
	resolved, err := s.resolve(document)
	if err != nil {
		s.Fatal(err)
	}
	text, err := json.Marshal(resolved)
	if err != nil {
		s.Fatal(err)
	}
	policy, err := iamtest.ParsePolicy(text)
	if err != nil {
		s.Fatal(err)
	}
	return policy
}

func (s services) may(kind string, decided iamtest.Decision, err error) {
	s.Helper()
	s.asked[kind]++
	if err != nil || !decided.Allowed {
		s.Errorf("%s: %s %v", kind, decided.Reason, err)
	}
}

func (s services) roleMay(kind, role, action, resource string) {
	s.Helper()
	decided, err := s.account.Decide(role, iamtest.Request{Action: action, Resource: resource,
		Context: map[string][]string{"aws:SecureTransport": {"true"}}})
	s.may(kind, decided, err)
}

// assumed checks that each role can be assumed by its service, and that some service uses it.
func (s services) assumed() {
	s.Helper()
	used := map[string]bool{}
	check := func(service string, arn any) {
		role := s.text(arn)
		role = role[strings.LastIndex(role, "/")+1:]
		s.by("AWS::IAM::Role", func(id string, properties map[string]any) {
			if withoutHash(id) != role {
				return
			}
			used[role] = true
			decided, err := iamtest.Decide(iamtest.Request{Service: service, Action: "sts:AssumeRole", Resource: s.text(arn)},
				nil, []iamtest.Policy{s.policy(properties["AssumeRolePolicyDocument"])})
			s.may("trust", decided, err)
		})
	}
	for kind, of := range map[string]struct {
		service    string
		properties []string
	}{
		"AWS::Lambda::Function":            {"lambda.amazonaws.com", []string{"Role"}},
		"AWS::ECS::TaskDefinition":         {"ecs-tasks.amazonaws.com", []string{"TaskRoleArn", "ExecutionRoleArn"}},
		"AWS::StepFunctions::StateMachine": {"states.amazonaws.com", []string{"RoleArn"}},
		"AWS::ApiGateway::Account":         {"apigateway.amazonaws.com", []string{"CloudWatchRoleArn"}},
		"AWS::IAM::InstanceProfile":        {"ec2.amazonaws.com", []string{"Roles"}},
	} {
		s.by(kind, func(_ string, properties map[string]any) {
			for _, property := range of.properties {
				for _, arn := range list(properties[property]) {
					check(of.service, arn)
				}
			}
		})
	}
	s.by("AWS::IAM::Role", func(id string, _ map[string]any) {
		if !used[withoutHash(id)] {
			s.Errorf("no service assumes %s", id)
		}
	})
}

// polled checks that each function's role lets Lambda receive events from the function's sources.
func (s services) polled() {
	s.Helper()
	s.by("AWS::Lambda::EventSourceMapping", func(_ string, properties map[string]any) {
		role := s.account.RoleOf(s.text(properties["FunctionName"]))
		source := s.text(properties["EventSourceArn"])
		actions := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
		if strings.Contains(source, ":dynamodb:") {
			actions = []string{"dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:DescribeStream", "dynamodb:ListStreams"}
		}
		for _, action := range actions {
			s.roleMay("event source", role, action, source)
		}
	})
}

// invoked checks that a service may start a function on behalf of a resource.
func (s services) invoked(service string, function any, source string) {
	s.Helper()
	arn := s.text(function)
	var policies []iamtest.Policy
	s.by("AWS::Lambda::Permission", func(_ string, properties map[string]any) {
		if s.text(properties["FunctionName"]) != arn {
			return
		}
		// Lambda writes this condition into the function's policy.
		when := map[string]any{"ArnLike": map[string]any{"AWS:SourceArn": properties["SourceArn"]}}
		if account := properties["SourceAccount"]; account != nil {
			when["StringEquals"] = map[string]any{"AWS:SourceAccount": account}
		}
		policies = append(policies, s.policy(map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
			"Effect": "Allow", "Principal": map[string]any{"Service": properties["Principal"]},
			"Action": properties["Action"], "Resource": arn, "Condition": when,
		}}}))
	})
	decided, err := iamtest.Decide(iamtest.Request{
		Service: service, Action: "lambda:InvokeFunction", Resource: arn,
		Context: map[string][]string{"aws:SourceArn": {source}, "aws:SourceAccount": {awstest.Account}},
	}, nil, policies)
	s.may("invocation by "+service, decided, err)
}

func (s services) started() {
	s.Helper()
	s.by("AWS::Events::Rule", func(id string, properties map[string]any) {
		for _, target := range list(properties["Targets"]) {
			s.invoked("events.amazonaws.com", at(target, "Arn"), s.text(map[string]any{"Fn::GetAtt": []any{id, "Arn"}}))
		}
	})
	s.by("AWS::S3::Bucket", func(id string, properties map[string]any) {
		for _, notified := range list(at(properties, "NotificationConfiguration", "LambdaConfigurations")) {
			if notified != nil {
				s.invoked("s3.amazonaws.com", at(notified, "Function"), s.text(map[string]any{"Fn::GetAtt": []any{id, "Arn"}}))
			}
		}
	})
	s.by("AWS::ApiGateway::Method", func(_ string, properties map[string]any) {
		uri := at(properties, "Integration", "Uri")
		if uri == nil {
			return // API Gateway answers this itself
		}
		_, function, _ := strings.Cut(s.text(uri), "/functions/")
		function, _, _ = strings.Cut(function, "/invocations")
		function, _, _ = strings.Cut(function, "/response-streaming-invocations")
		s.invoked("apigateway.amazonaws.com", function,
			awstest.Here.ARN("execute-api", s.text(properties["RestApiId"])+"/v1/GET/v1/jobs/1"))
	})
}

// executed checks that the state machine's role has the permissions that its states need.
func (s services) executed() {
	s.Helper()
	s.by("AWS::StepFunctions::StateMachine", func(_ string, properties map[string]any) {
		var machine struct {
			States map[string]struct {
				Type       string
				Resource   string
				Parameters struct{ TableName string }
			}
		}
		if err := json.Unmarshal([]byte(s.text(properties["DefinitionString"])), &machine); err != nil {
			s.Fatal(err)
		}
		role := s.text(properties["RoleArn"])
		role = role[strings.LastIndex(role, "/")+1:]
		for name, state := range machine.States {
			if state.Type != "Task" {
				continue // it calls nothing
			}
			switch _, does, _ := strings.Cut(state.Resource, ":states:::"); does {
			case "sqs:sendMessage.waitForTaskToken":
				for _, lane := range []string{"video", "image"} {
					s.roleMay("state "+name, role, "sqs:SendMessage", awstest.Here.ARN("sqs", "cutroom-dev-"+lane))
				}
			case "dynamodb:updateItem":
				s.roleMay("state "+name, role, "dynamodb:UpdateItem",
					awstest.Here.ARN("dynamodb", "table/"+state.Parameters.TableName))
			default:
				s.Errorf("the state %s calls %q, which is not evaluated", name, state.Resource)
			}
		}
	})
}

// published checks that the alarms may publish to their topics.
func (s services) published() {
	s.Helper()
	policies := map[string][]iamtest.Policy{}
	s.by("AWS::SNS::TopicPolicy", func(_ string, properties map[string]any) {
		for _, topic := range list(properties["Topics"]) {
			policies[s.text(topic)] = append(policies[s.text(topic)], s.policy(properties["PolicyDocument"]))
		}
	})
	s.by("AWS::CloudWatch::Alarm", func(_ string, properties map[string]any) {
		for _, topic := range list(properties["AlarmActions"]) {
			if topic == nil {
				continue
			}
			decided, err := iamtest.Decide(iamtest.Request{
				Service: "cloudwatch.amazonaws.com", Action: "sns:Publish", Resource: s.text(topic),
				Context: map[string][]string{
					"aws:SourceArn":     {awstest.Here.ARN("cloudwatch", "alarm:"+s.text(properties["AlarmName"]))},
					"aws:SourceAccount": {awstest.Account}, "aws:SecureTransport": {"true"},
				},
			}, nil, policies[s.text(topic)])
			s.may("alarm", decided, err)
		}
	})
}

// Each AWS service has the permissions that the stack needs: to assume a role, receive events,
// start a function, run a state, or publish an alarm.
func TestServicesHaveTheirPermissions(t *testing.T) {
	for name, c := range map[string]struct {
		made  template
		kinds []string
	}{
		"default": {synthesize(t, contextOfChoices),
			[]string{"trust", "event source", "alarm", "state Dispatch", "invocation by s3.amazonaws.com",
				"invocation by events.amazonaws.com", "invocation by apigateway.amazonaws.com"}},
		"containers": {containersOf(t), []string{"trust"}},
		"GPUs":       {synthesizeGPU(t, nil), []string{"trust"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.made.services(t)
			s.assumed()
			s.polled()
			s.started()
			s.executed()
			s.published()
			for _, kind := range c.kinds {
				if s.asked[kind] == 0 {
					t.Errorf("nothing was evaluated of the kind %q: %v", kind, s.asked)
				}
			}
		})
	}
}
