package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	elb "github.com/aws/aws-cdk-go/awscdk/v2/awselasticloadbalancingv2"
	"github.com/aws/jsii-runtime-go"
)

type balanced struct {
	container
	domain domain
	// idle is how long a connection may be silent before the balancer closes it, in seconds.
	idle  int
	tasks int
}

const (
	// startTime is the maximum time until a task responds, in seconds. addressTime is the
	// additional time for a task that looks up its public address (package ecs).
	startTime, addressTime = 30, 60
)

const longestBalancer = 32

// newBalanced runs a container behind a load balancer with TLS. Unlike the rest of the stack, the
// balancer and its tasks cost money while idle.
func (s *stack) newBalanced(b balanced) {
	start := startTime
	if b.live {
		start += addressTime
	}
	service := s.newService(b.container, &awsecs.FargateServiceProps{
		DesiredCount: jsii.Number(b.tasks), MinHealthyPercent: jsii.Number(100), MaxHealthyPercent: jsii.Number(200),
		HealthCheckGracePeriod: awscdk.Duration_Seconds(jsii.Number(start)),
		DeploymentAlarms:       s.rollBackOn(b.name + "-errors"),
	})
	balancer := elb.NewApplicationLoadBalancer(s.Stack, jsii.String(title(b.name)+"Balancer"),
		&elb.ApplicationLoadBalancerProps{
			LoadBalancerName: jsii.String(s.boundedName(b.name, longestBalancer)), Vpc: s.cluster.vpc, InternetFacing: jsii.Bool(!s.Private),
			IdleTimeout: awscdk.Duration_Seconds(jsii.Number(b.idle)), DropInvalidHeaderFields: jsii.Bool(true),
			DeletionProtection: jsii.Bool(s.Protected),
		})
	listener := balancer.AddListener(jsii.String("Tls"), &elb.BaseApplicationListenerProps{
		Port: jsii.Number(443), SslPolicy: elb.SslPolicy_RECOMMENDED_TLS,
		Certificates: &[]elb.IListenerCertificate{
			awscertificatemanager.Certificate_FromCertificateArn(s.Stack, jsii.String(title(b.name)+"Certificate"),
				jsii.String(b.domain.Certificate)),
		},
	})
	target := listener.AddTargets(jsii.String(title(b.name)), &elb.AddApplicationTargetsProps{
		Port: jsii.Number(b.port), Protocol: elb.ApplicationProtocol_HTTP,
		Targets:             &[]elb.IApplicationLoadBalancerTarget{service},
		DeregistrationDelay: awscdk.Duration_Seconds(jsii.Number(b.grace)),
		HealthCheck: &elb.HealthCheck{Path: jsii.String("/healthz"),
			Interval: awscdk.Duration_Seconds(jsii.Number(15))},
	})
	s.filter(b.name+"-balancer", balancer.LoadBalancerArn())
	s.balancers[b.name] = balancing{balancer, target}
	suppress(balancer, "AwsSolutions-ELB2",
		"The service logs every request itself, with the request id that the caller receives.")
	suppress(balancer, "AwsSolutions-EC23",
		"The load balancer is the public entry point of the service. Callers authenticate with keys.")
	s.output(title(b.name)+"DomainTarget", "Alias target for "+b.domain.Name, balancer.LoadBalancerDnsName())
}
