package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

// newDashboard creates a dashboard that shows on one page whether the service works and what it
// costs. It has at most 50 metrics, because CloudWatch charges for dashboards with more.
func (s *stack) newDashboard(alarms []interfacesawscloudwatch.IAlarmRef, media, inference awsapigateway.RestApi) {
	apis := func(metric func(awsapigateway.RestApi) awscloudwatch.Metric) []awscloudwatch.IMetric {
		return []awscloudwatch.IMetric{metric(media), metric(inference)}
	}
	busy := []string{"jobs", "images", "files", "inference"}
	help := "What an alarm means and what to do: `docs/runbook.md`. One request: its `request_id` in the logs."
	if s.Tracing {
		help += " Where its time went: [Traces](#xray:traces/query), such as by `annotation.cutroom_job`."
	}
	// Omit the models function, which cannot fail, and the batches and c2pa functions, whose failures are included in
	// the 5xx metric.
	failing := slices.DeleteFunc(functions.Names(), func(name string) bool {
		return name == "models" || name == "batches" || name == "c2pa"
	})
	rows := [][]awscloudwatch.IWidget{
		{awscloudwatch.NewTextWidget(&awscloudwatch.TextWidgetProps{
			Markdown: jsii.String(help), Width: jsii.Number(24), Height: jsii.Number(1),
		})},
		{awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
			Title: jsii.String("Alarms"), Alarms: &alarms, Width: jsii.Number(24), Height: jsii.Number(3),
		})},
		{
			graph("Requests",
				apis(func(a awsapigateway.RestApi) awscloudwatch.Metric { return a.MetricCount(metricOptions("Sum")) })),
			graph("Errors 5xx",
				apis(func(a awsapigateway.RestApi) awscloudwatch.Metric { return a.MetricServerError(metricOptions("Sum")) })),
			graph("Latency, p90, ms",
				apis(func(a awsapigateway.RestApi) awscloudwatch.Metric { return a.MetricLatency(metricOptions("p90")) })),
		},
		{
			graph("Jobs waiting", s.ofQueues("ApproximateNumberOfMessagesVisible", "Maximum")),
			graph("Oldest job, waiting or in work, s", s.ofQueues("ApproximateAgeOfOldestMessage", "Maximum")),
			graph("Executions", []awscloudwatch.IMetric{s.executions("ExecutionsStarted"), s.executions("ExecutionsSucceeded")}),
			graph("Failed jobs", []awscloudwatch.IMetric{s.executions("ExecutionsFailed"), s.deadLetters()}),
		},
		{
			graph("Function time, p90, ms", s.ofFunctions("Duration", "p90", busy...)),
			graph("Function errors", s.ofFunctions("Errors", "Sum", failing...)),
			graph("Throttles", []awscloudwatch.IMetric{s.functionThrottles(), s.tableThrottles()}),
		},
		{
			graph("Cost: invocations", s.ofFunctions("Invocations", "Sum", busy...)),
			graph("Cost: read units", s.ofTables("ConsumedReadCapacityUnits")),
			graph("Cost: write units", s.ofTables("ConsumedWriteCapacityUnits")),
		},
	}
	var widgets []*[]awscloudwatch.IWidget
	for _, row := range rows {
		widgets = append(widgets, &row)
	}
	awscloudwatch.NewDashboard(s.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		// Include the region, because all of an account's regions share one namespace for dashboards.
		DashboardName: jsii.String(s.prefix() + "-" + *s.Region()), Widgets: &widgets,
	})
}

func graph(name string, metrics []awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(name), Left: &metrics, Width: jsii.Number(6), Height: jsii.Number(6),
		LeftYAxis: &awscloudwatch.YAxisProps{Min: jsii.Number(0)},
	})
}

func (s *stack) ofFunctions(metric, statistic string, names ...string) []awscloudwatch.IMetric {
	var metrics []awscloudwatch.IMetric
	for _, name := range names {
		if f, ok := s.functions[name]; ok {
			metrics = append(metrics, f.Metric(jsii.String(metric), labelled(statistic, name)))
		}
	}
	return metrics
}

func (s *stack) ofTables(metric string) []awscloudwatch.IMetric {
	var metrics []awscloudwatch.IMetric
	for _, name := range sortedKeys(s.tables) {
		metrics = append(metrics, s.tables[name].Metric(jsii.String(metric), labelled("Sum", name)))
	}
	return metrics
}

func (s *stack) ofQueues(metric, statistic string) []awscloudwatch.IMetric {
	var metrics []awscloudwatch.IMetric
	for _, name := range sortedKeys(s.lanes) {
		metrics = append(metrics, s.lanes[name].queue.Metric(jsii.String(metric), labelled(statistic, name)))
	}
	return metrics
}

func labelled(statistic, name string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{
		Statistic: jsii.String(statistic), Period: period(), Label: jsii.String(name),
	}
}
