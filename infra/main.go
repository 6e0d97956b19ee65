// Command infra is the CDK app. It describes the service in AWS: one stack per stage and, if the
// stage has GPU workers, a second stack for them. `cdk synth` writes the templates, `cdk deploy`
// deploys them. options.go lists the deployer's options, and cdk.json lists CDK's feature flags.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	err := writeTemplates()
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
	}
	// Two goroutines of CDK's runtime wait for its process, so that one of them reports a failure at every normal end.
	os.Stderr = nil
	jsii.Close()
	if err != nil {
		os.Exit(1)
	}
}

func writeTemplates() error {
	app := awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)})
	options, err := readOptions(contextOf(app))
	if err != nil {
		return err
	}
	stack, err := newStack(app, options)
	if err != nil {
		return err
	}
	if options.GPU.made() && !options.DataAlone {
		newGPUStack(app, stack)
	}
	app.Synth(nil)
	return nil
}
