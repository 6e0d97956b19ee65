package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOptionsHaveDefaults(t *testing.T) {
	o, err := readOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Stage != "dev" || o.Protected || !o.Arm64 || !o.Streaming || o.Worker != "preview" || o.Realtime ||
		o.Ingest != "lambda" {
		t.Errorf("the defaults are %+v", o)
	}
	if o.MaxUpload != 512<<20 || o.Family != "gen" {
		t.Errorf("the defaults are %+v", o)
	}
	if o, err = readOptions(
		map[string]any{"stage": "prod", "arch": "x86_64", "logDays": 7.0, "realtime": false}); err != nil {
		t.Fatal(err)
	}
	if !o.Protected || o.Arm64 || o.LogDays != 7 {
		t.Errorf("the options of prod are %+v", o)
	}
}

func TestInvalidOptionsAreNamed(t *testing.T) {
	tests := []struct {
		name    string
		context map[string]any
		want    string
	}{
		{"stage with capitals", map[string]any{"stage": "Prod"}, "stage must be a lowercase letter"},
		{"unknown architecture", map[string]any{"arch": "arm"}, `arch must be arm64 or x86_64, not "arm"`},
		{"streaming that is neither on nor off", map[string]any{"streaming": "no"}, "streaming must be on or off"},
		{"family with a slash", map[string]any{"family": "a/b"}, "family must be"},
		{"upload limit of zero", map[string]any{"maxUpload": "0"}, "maxUpload must be an integer from 1"},
		{"upload limit with a unit", map[string]any{"maxUpload": "1GB"}, `not "1GB"`},
		{"unknown worker", map[string]any{"worker": "gpu"}, "worker must be preview or none"},
		{"invalid signing", map[string]any{"c2pa": "yes"}, `c2pa must be auto or on or off, not "yes"`},
		{"signing without workers", map[string]any{"c2pa": "on", "worker": "none"}, "c2pa must not be on with worker=none"},
		{"retention that CloudWatch does not have", map[string]any{"logDays": "8"}, "logDays must be one of"},
		{"catalog that does not exist", map[string]any{"catalog": "missing.yaml"}, `catalog must be an existing file, not "missing.yaml"`},
		{"catalog outside the repository", map[string]any{"catalog": "../go.mod"}, "catalog must be a path within the repository"},
		{"domain without certificate", map[string]any{"mediaDomain": "media.example.com"}, "mediaDomain and mediaCertificate must be set together"},
		{"realtime without a name", map[string]any{"realtime": "true"}, "realtimeDomain and realtimeCertificate are required with realtime=true"},
		{"containers without a name", map[string]any{"ingest": "fargate"}, "mediaDomain and mediaCertificate are required with ingest=fargate"},
		{"GPUs with worker none", map[string]any{"gpu": "true", "worker": "none"}, "worker must not be none with gpu=prepare or gpu=true"},
		{"GPU options without GPUs", map[string]any{"gpu.min": "1", "gpu.max": 3.0}, "gpu.max requires gpu=prepare or gpu=true"},
		{"GPU minimum above the maximum", map[string]any{"gpu": "true", "gpu.min": "3"}, "gpu.min must be at most gpu.max, which is 2"},
		{"GPU instances with Arm processors", map[string]any{"gpu": "true", "gpu.instances": "g6e.xlarge,g5g.xlarge"}, `GPUs, not "g5g.xlarge"`},
		{"name that is not an instance type", map[string]any{"gpu": "true", "gpu.instances": "H100"}, `GPUs, not "H100"`},
		{"on-demand base without spot", map[string]any{"gpu": "true", "gpu.onDemand": "1"}, "gpu.onDemand requires gpu.spot=true"},
		{"warm pool of spot instances", map[string]any{"gpu": true, "gpu.instances": "g6e.xlarge", "gpu.spot": true, "gpu.warmPool": "1"}, "gpu.warmPool requires gpu.spot=false and a single type"},
		{"warm pool of mixed instances", map[string]any{"gpu": "true", "gpu.warmPool": "1"}, "gpu.warmPool requires gpu.spot=false and a single type"},
		{"weights outside S3", map[string]any{"gpu": "true", "gpu.weights": "/models"}, "gpu.weights must be a prefix in S3"},
		{"weights with a wildcard", map[string]any{"gpu": "true", "gpu.weights": "s3://models/*"}, "gpu.weights must be a prefix in S3"},
		{"engine image outside ECR", map[string]any{"gpu": "true", "gpu.engineImage": "docker.io/engine"}, "gpu.engineImage must be an image in ECR"},
		{"model map with an engine image", map[string]any{"gpu": "true", "gpu.engineImage": engineImageOfTests, "gpu.models": "options.go"}, "gpu.models must not be set with gpu.engineImage"},
		{"stage with the suffix of GPU stacks", map[string]any{"stage": "dev-gpu"}, "stage must not end in -gpu"},
		{"network without subnets", map[string]any{"vpc": "vpc-1"}, "vpc requires subnets"},
		{"subnets without network", map[string]any{"subnets": "subnet-1"}, "vpc is required with subnets"},
		{"local AWS with a path", map[string]any{"endpoint": "http://localhost:4566/x", "worker": "none"}, "endpoint must be a URL without a path"},
		{"local AWS with containers", map[string]any{"endpoint": "http://localhost:4566"}, "endpoint allows no containers"},
		{"public endpoint without an endpoint", map[string]any{"publicEndpoint": "http://localhost:4566"}, "publicEndpoint requires endpoint"},
		{"secret that is not an ARN", map[string]any{"upstreamSecrets": "arn:aws:secretsmanager:a:1:secret:b,key"}, `upstreamSecrets must be ARNs of secrets, not "key"`},
		{"fewer functions than can be split", map[string]any{"concurrency": "100"}, "concurrency must be an integer from 150"},
		{"a single zone", map[string]any{"networkZones": "1"}, "networkZones must be a number from 2 to 6 or names of zones"},
		{"a single zone by name", map[string]any{"networkZones": "eu-west-1a"}, "networkZones must name at least two zones"},
		{"a zone twice", map[string]any{"networkZones": "eu-west-1a,eu-west-1a"}, "networkZones must not name a zone twice"},
		{"zones without GPUs", map[string]any{"gpu.zones": "3"}, "gpu.zones requires gpu=prepare or gpu=true"},
		{"network of containers without subnets", map[string]any{"networkVpc": "vpc-1"}, "networkVpc requires networkSubnets and the names of their zones in networkZones"},
		{"subnets of containers without network", map[string]any{"networkSubnets": "subnet-1"}, "networkVpc is required with networkSubnets"},
		{"tasks with functions", map[string]any{"ingestTasks": "2"}, "ingestTasks requires ingest=fargate"},
		{"tasks without sessions", map[string]any{"realtimeTasks": "2"}, "realtimeTasks requires realtime=true"},
		{"live video without sessions", map[string]any{"webrtc": "true"}, "webrtc requires realtime=true"},
		{"relays without live video", map[string]any{"turn": "turn:turn.example.com", "turnSecret": turnSecretOfTests}, "webrtc must be true with turn or turnSecret"},
		{"relays without a secret", map[string]any{"webrtc": "true", "turn": "turn:turn.example.com"}, "turn and turnSecret must be set together"},
		{"invalid relay", map[string]any{"webrtc": "true", "turn": "https://turn.example.com", "turnSecret": turnSecretOfTests}, `turn must be URLs such as turns:turn.example.com:443?transport=tcp, not "https://turn.example.com"`},
		{"mail address without a domain", map[string]any{"alarmEmail": "me"}, "alarmEmail must be an e-mail address"},
		{"a topic and an address", map[string]any{"alarmEmail": "a@example.com", "alarmTopic": topicOfTests}, "alarmTopic must not be set with alarmEmail"},
		{"a topic without alarms", map[string]any{"alarmTopic": topicOfTests, "watch": "off"}, "alarmEmail and alarmTopic require watch=on"},
		{"a budget for nobody", map[string]any{"budget": "100"}, "budget requires alarmEmail or alarmTopic"},
		{"a global web ACL", map[string]any{"webAcl": "arn:aws:wafv2:us-east-1:111122223333:global/webacl/a/1"}, "webAcl must be the ARN of a regional web ACL"},
		{"a tag without a value", map[string]any{"tags": "team"}, `tags must be tags such as team=media other than service and stage, not "team"`},
		{"a tag of the service", map[string]any{"tags": "stage=x"}, `not "stage=x"`},
		{"spare capacity for no workers", map[string]any{"workerSpot": "true", "worker": "none"}, "workerSpot must not be true with worker=none"},
		{"private containers in a new network", map[string]any{"private": "true"}, "private requires networkVpc, with private subnets"},
		{"a large network", map[string]any{"networkCidr": "10.0.0.0/8"}, "networkCidr must be an address block such as 10.20.0.0/16, of /16 to /22"},
		{"a private API with a console", map[string]any{"apiEndpoints": "vpce-1", "console": "true"}, "apiEndpoints allows no console"},
		{"GPUs in subnets without zones", map[string]any{"gpu": "true", "gpu.vpc": "vpc-1", "gpu.subnets": "subnet-1,subnet-2"}, "gpu.vpc and gpu.subnets must be set together"},
		{"a rollout without alarms", map[string]any{"rollout": "canary", "watch": "off"}, "rollout canary and force require watch=on"},
		{"no URL at all", map[string]any{"defaultUrls": "off"}, "defaultUrls must not be off without a domain of an API"},
		{"misspelt option", map[string]any{"stages": "prod"}, "unknown option stages: must be one of alarmEmail, alarmTopic, apiEndpoints"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := readOptions(test.context)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAllInvalidOptionsAreListed(t *testing.T) {
	_, err := readOptions(map[string]any{"stage": "1", "arch": "2"})
	if err == nil || !strings.Contains(err.Error(), "stage must") || !strings.Contains(err.Error(), "arch must") {
		t.Errorf("the error is %v, want both", err)
	}
}

func TestCDKContextIsIgnored(t *testing.T) {
	if _, err := readOptions(map[string]any{
		"aws:cdk:bundling-stacks": "x", "@aws-cdk/core:flag": true, "availability-zones:account=1": "a",
	}); err != nil {
		t.Error(err)
	}
}

func TestUnbuiltFunctionsAreNamed(t *testing.T) {
	o := options{Functions: fakeFunctions(t)}
	if err := o.allBuilt(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(o.Functions, "wake", "bootstrap")); err != nil {
		t.Fatal(err)
	}
	if err := o.allBuilt(); err == nil || !strings.Contains(err.Error(), "has no wake: build") {
		t.Errorf("the error is %v, want one that names wake", err)
	}
}
