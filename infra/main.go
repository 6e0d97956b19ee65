// Command infra is the CDK app. It describes the service in AWS: one stack per stage and, if the
// stage has GPU workers, a second stack for them. `make synth` writes the templates, `make deploy`
// deploys them. options.go lists the deployer's options.
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
	if options.GPU.made() && !options.DataAlone {
		newGPUStack(app, stack)
	}
	app.Synth(nil)
}

func stop(err error) {
	fmt.Fprintln(os.Stderr, "infra:", err)
	os.Exit(1)
}

func newApp() awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{
		AnalyticsReporting: jsii.Bool(false),
		PostCliContext:     features(),
	})
}

// features returns the feature flags that CDK sets in new projects.
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
