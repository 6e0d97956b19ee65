// Command infra is the CDK app: it describes the service in AWS, one stack a
// stage, and another for its GPUs where there are some. `make synth` writes the
// templates, `make deploy` deploys them. What can be chosen is in options.go.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()
	app := newApp()
	options, err := readOptions(contextOf(app))
	if err != nil {
		stop(err)
	}
	if err := options.built(); err != nil {
		stop(err)
	}
	stack, err := newStack(app, options)
	if err != nil {
		stop(err)
	}
	if options.GPU.On {
		newGPUStack(app, stack)
	}
	app.Synth(nil)
}

func stop(err error) {
	fmt.Fprintln(os.Stderr, "infra:", err)
	os.Exit(1)
}

// newApp makes the app, with the context of the command line in it.
func newApp() awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{
		AnalyticsReporting: jsii.Bool(false),
		PostCliContext:     features(),
	})
}

// features are the ways in which CDK behaves otherwise in new projects.
func features() *map[string]any {
	return &map[string]any{
		"@aws-cdk/aws-iam:minimizePolicies":                      true,
		"@aws-cdk/core:checkSecretUsage":                         true,
		"@aws-cdk/core:enablePartitionLiterals":                  true,
		"@aws-cdk/aws-apigateway:disableCloudWatchRole":          true,
		"@aws-cdk/aws-ecs:arnFormatIncludesClusterName":          true,
		"@aws-cdk/aws-ecs:removeDefaultDesiredCount":             true,
		"@aws-cdk/aws-ecs:disableEcsImdsBlocking":                true,
		"@aws-cdk/aws-ecs:reduceEc2FargateCloudWatchPermissions": true,
	}
}
