package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

type api struct {
	name, description string
	domain            domain
	shape             errorShape
	// tooLarge is the error message for a body that is too large for API Gateway.
	tooLarge  string
	endpoints []endpoint
}

// endpoint is a path and the function that serves all its methods. The handlers return 405 with Allow for
// unsupported methods, serve HEAD like GET, and answer preflights for the allowed origins.
type endpoint struct {
	path, function string
}

const stageName = "live"

func (s *stack) newAPI(a api, logging apiLogging) awsapigateway.RestApi {
	props := &awsapigateway.RestApiProps{
		RestApiName: jsii.String(s.name(a.name)), Description: jsii.String(a.description),
		EndpointConfiguration: &awsapigateway.EndpointConfiguration{
			Types: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		},
		CloudWatchRole:   jsii.Bool(false),
		BinaryMediaTypes: jsii.Strings(s.binaryTypes()...),
		DeployOptions: &awsapigateway.StageOptions{
			StageName: jsii.String(stageName),
			AccessLogDestination: awsapigateway.NewLogGroupLogDestination(
				s.newLogGroup(title(a.name)+"AccessLogs", "/cutroom/"+s.Stage+"/"+a.name+"-access")),
			AccessLogFormat:      awsapigateway.AccessLogFormat_Custom(jsii.String(accessLogFormat)),
			ThrottlingRateLimit:  jsii.Number(s.RequestsPerSecond),
			ThrottlingBurstLimit: jsii.Number(s.Burst),
			// Execution logs would contain prompts and keys.
			LoggingLevel:     awsapigateway.MethodLoggingLevel_OFF,
			DataTraceEnabled: jsii.Bool(false),
			MetricsEnabled:   jsii.Bool(false),
			TracingEnabled:   jsii.Bool(s.Tracing),
		},
	}
	if a.domain.set() && !(a.name == "media" && s.Ingest == "fargate") {
		props.DomainName = &awsapigateway.DomainNameOptions{
			DomainName: jsii.String(a.domain.Name),
			Certificate: awscertificatemanager.Certificate_FromCertificateArn(s.Stack,
				jsii.String(title(a.name)+"Certificate"), jsii.String(a.domain.Certificate)),
			EndpointType:   awsapigateway.EndpointType_REGIONAL,
			SecurityPolicy: awsapigateway.SecurityPolicy_TLS_1_2,
		}
	}
	props.DisableExecuteApiEndpoint = jsii.Bool(a.domain.set() && !s.DefaultURLs)
	var endpoints []awsec2.IVpcEndpoint
	for i, id := range s.APIEndpoints {
		endpoints = append(endpoints, awsec2.InterfaceVpcEndpoint_FromInterfaceVpcEndpointAttributes(s.Stack,
			jsii.String(fmt.Sprintf("%sEndpoint%d", title(a.name), i)),
			&awsec2.InterfaceVpcEndpointAttributes{VpcEndpointId: jsii.String(id), Port: jsii.Number(443)}))
	}
	if len(endpoints) > 0 {
		props.EndpointConfiguration = &awsapigateway.EndpointConfiguration{
			Types: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_PRIVATE}, VpcEndpoints: &endpoints,
		}
	}
	rest := awsapigateway.NewRestApi(s.Stack, jsii.String(title(a.name)+"Api"), props)
	rest.Node().TryRemoveChild(jsii.String("Endpoint")) // this output would show the default URL even if it is off
	if len(endpoints) > 0 {
		rest.GrantInvokeFromVpcEndpointsOnly(&endpoints)
	}
	// The default policy accepts TLS 1.0. In the access mode STRICT, requests through a proxy with another name fail.
	plain := rest.Node().DefaultChild().(awsapigateway.CfnRestApi)
	plain.SetSecurityPolicy(jsii.String("SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09"))
	plain.SetEndpointAccessMode(jsii.String("BASIC"))
	s.filter(a.name, rest.DeploymentStage().StageArn())
	if logging.account != nil {
		rest.DeploymentStage().Node().AddDependency(logging.account)
	}
	for _, e := range a.endpoints {
		method := rest.Root().ResourceForPath(jsii.String(e.path)).AddMethod(jsii.String("ANY"), s.integration(e), nil)
		if s.Endpoint != "" {
			// SAM ignores the API's binary media types and uses this property of the integrations instead. The
			// property does not exist in CloudFormation.
			method.Node().DefaultChild().(awsapigateway.CfnMethod).AddPropertyOverride(jsii.String("Integration.ContentType"),
				"*/*")
		}
	}
	s.addGatewayResponses(rest, a)

	suppress(rest, "AwsSolutions-APIG2", "The handlers validate every field and respond as the contract specifies, "+
		"which API Gateway's validation cannot.")
	suppress(rest, "AwsSolutions-APIG3",
		"AWS WAF is billed by the month and by the rule. A deployer who needs it can attach a web ACL to the stage.")
	suppress(rest, "AwsSolutions-APIG4",
		"The handlers authenticate with the service's own keys. An authorizer would read each key a second time.")
	suppress(rest, "AwsSolutions-COG4",
		"The service authenticates accounts by API keys. It has no users, so it needs no user pool.")
	suppress(rest, "AwsSolutions-APIG6",
		"Execution logs would contain prompts and keys. The access log and the functions' logs cover each request.")
	return rest
}

// filter applies the web ACL from the options, if one is set, to an API's stage or a load balancer.
func (s *stack) filter(name string, arn *string) {
	if s.WebACL != "" {
		awscdk.NewCfnResource(s.Stack, jsii.String(title(name)+"WebAcl"), &awscdk.CfnResourceProps{
			Type:       jsii.String("AWS::WAFv2::WebACLAssociation"),
			Properties: &map[string]any{"ResourceArn": arn, "WebACLArn": s.WebACL},
		})
	}
}

// binaryTypes returns the content types that API Gateway forwards as bytes. With streaming, only
// requests need them. Without streaming, a binary response needs every type, because API Gateway
// decides by the client's Accept header. Preflights have no body and work either way.
func (s *stack) binaryTypes() []string {
	if s.Streaming {
		return []string{"multipart/form-data"}
	}
	return []string{"*/*"}
}

// integration connects an endpoint to its function. It sets the timeout explicitly, so that API
// Gateway's default does not cut off a response.
func (s *stack) integration(e endpoint) awsapigateway.Integration {
	options := &awsapigateway.LambdaIntegrationOptions{
		ScopePermissionToMethod: jsii.Bool(false),
		Timeout:                 awscdk.Duration_Seconds(jsii.Number(bufferedTimeout)),
	}
	if f, _ := functions.Find(e.function); f.Streams && s.Streaming {
		options.ResponseTransferMode = awsapigateway.ResponseTransferMode_STREAM
		options.Timeout = s.functions[e.function].Timeout()
	}
	if s.Endpoint != "" {
		options.ContentHandling = awsapigateway.ContentHandling_CONVERT_TO_BINARY
	}
	return awsapigateway.NewLambdaIntegration(s.called(e.function), options)
}

// accessLogFormat contains no key, query or id. Its path is the API resource's, with placeholders for ids.
var accessLogFormat = `{` + strings.Join([]string{
	`"time":"$context.requestTimeEpoch"`, `"request_id":"$context.requestId"`, `"ip":"$context.identity.sourceIp"`,
	`"method":"$context.httpMethod"`, `"resource":"$context.resourcePath"`, `"status":"$context.status"`,
	`"bytes":"$context.responseLength"`, `"latency_ms":"$context.responseLatency"`,
	// This is the status of Lambda itself, and not of the function's response.
	`"integration":"$context.integrationStatus"`, `"integration_ms":"$context.integrationLatency"`, `"error":"$context.error.responseType"`,
}, ",") + `}`

type apiLogging struct{ account awsapigateway.CfnAccount }

// newAPILogging creates the role with which API Gateway writes access logs. The role is a setting of the entire
// account and region, which other stacks may share, so it is kept when the stack is deleted. An option omits it.
func (s *stack) newAPILogging() apiLogging {
	if !s.APILogRole {
		return apiLogging{}
	}
	role := awsiam.NewRole(s.Stack, jsii.String("ApiLogRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("apigateway.amazonaws.com"), nil),
		ManagedPolicies: &[]awsiam.IManagedPolicy{
			awsiam.ManagedPolicy_FromAwsManagedPolicyName(jsii.String("service-role/AmazonAPIGatewayPushToCloudWatchLogs")),
		},
	})
	role.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN)
	suppress(role, "AwsSolutions-IAM4", "API Gateway requires this managed policy to write logs, for the entire account.",
		"Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs")
	account := awsapigateway.NewCfnAccount(s.Stack, jsii.String("ApiAccount"),
		&awsapigateway.CfnAccountProps{CloudWatchRoleArn: role.RoleArn()})
	account.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN, nil)
	return apiLogging{account}
}
