package iamtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

type Place struct{ Partition, Region, Account string }

// Rights holds all policies of a deployment.
type Rights struct {
	// Roles maps each role to its policies. A role is named as in the template, without CDK's
	// unique suffix, such as "FilesRole".
	Roles map[string][]json.RawMessage
	// Resources maps the ARN of each resource that has policies to those policies.
	Resources map[string][]json.RawMessage
	// Managed lists the AWS managed policies of each role, which are not evaluated.
	Managed map[string][]string `json:",omitempty"`
	// Functions maps function names to their roles.
	Functions map[string]string
}

type resource struct {
	Type       string
	Properties map[string]json.RawMessage
}

type deploying struct {
	Place
	resources map[string]resource
}

// ReadTemplate returns the policies in a synthesized template, resolved for a place.
//
// Errors: an invalid template, or a policy with unsupported content.
func ReadTemplate(text []byte, place Place) (Rights, error) {
	var template struct{ Resources map[string]resource }
	if err := json.Unmarshal(text, &template); err != nil {
		return Rights{}, fmt.Errorf("read a template: %w", err)
	}
	d := deploying{place, template.Resources}
	rights := Rights{
		Roles: map[string][]json.RawMessage{}, Resources: map[string][]json.RawMessage{},
		Managed: map[string][]string{}, Functions: map[string]string{},
	}
	for _, id := range slices.Sorted(maps.Keys(d.resources)) {
		if err := d.add(&rights, id); err != nil {
			return Rights{}, fmt.Errorf("%s of the template: %w", id, err)
		}
	}
	return rights, nil
}

// Resolver returns a function that resolves CloudFormation's intrinsic functions in a value of a
// synthesized template, for a place.
//
// Errors: an invalid template.
func Resolver(text []byte, place Place) (func(value any) (any, error), error) {
	var template struct{ Resources map[string]resource }
	if err := json.Unmarshal(text, &template); err != nil {
		return nil, fmt.Errorf("read a template: %w", err)
	}
	return deploying{place, template.Resources}.resolve, nil
}

func (d deploying) add(rights *Rights, id string) error {
	r := d.resources[id]
	switch r.Type {
	case "AWS::IAM::Role":
		return d.addRole(rights, id)
	case "AWS::Lambda::Function":
		role := regexp.MustCompile(`"Fn::GetAtt":\s*\[\s*"(\w+)"`).FindSubmatch(r.Properties["Role"])
		name, err := d.nameOf(id)
		if err == nil && role != nil {
			rights.Functions[name] = WithoutHash(string(role[1]))
		}
		return err
	case "AWS::IAM::Policy":
		return d.addPolicy(r, "Roles", func(id string) (string, error) { return WithoutHash(id), nil }, rights.Roles)
	case "AWS::S3::BucketPolicy":
		return d.addPolicy(r, "Bucket", d.arnOf, rights.Resources)
	case "AWS::SQS::QueuePolicy":
		return d.addPolicy(r, "Queues", d.arnOf, rights.Resources)
	case "AWS::SNS::TopicPolicy":
		return d.addPolicy(r, "Topics", d.arnOf, rights.Resources)
	case "AWS::IAM::ManagedPolicy":
		return fmt.Errorf("managed policies are not supported")
	}
	return nil
}

func (d deploying) addRole(rights *Rights, id string) error {
	r, name := d.resources[id], WithoutHash(id)
	var within []struct{ PolicyDocument any }
	if text := r.Properties["Policies"]; text != nil {
		if err := json.Unmarshal(text, &within); err != nil {
			return err
		}
	}
	rights.Roles[name] = append(rights.Roles[name], []json.RawMessage{}...)
	for _, p := range within {
		document, err := d.document(p.PolicyDocument)
		if err != nil {
			return err
		}
		rights.Roles[name] = append(rights.Roles[name], document)
	}
	var managed []any
	if text := r.Properties["ManagedPolicyArns"]; text != nil {
		if err := json.Unmarshal(text, &managed); err != nil {
			return err
		}
	}
	for _, arn := range managed {
		resolved, err := d.resolve(arn)
		if err != nil {
			return err
		}
		rights.Managed[name] = append(rights.Managed[name], fmt.Sprint(resolved))
	}
	return nil
}

func (d deploying) addPolicy(r resource, property string, named func(id string) (string, error),
	to map[string][]json.RawMessage) error {
	var value any
	if err := json.Unmarshal(r.Properties["PolicyDocument"], &value); err != nil {
		return err
	}
	document, err := d.document(value)
	if err != nil {
		return err
	}
	referred := regexp.MustCompile(`"Ref":\s*"(\w+)"`).FindAllSubmatch(r.Properties[property], -1)
	if len(referred) == 0 {
		return fmt.Errorf("a policy in the template has no resource: %s", r.Properties[property])
	}
	for _, reference := range referred {
		name, err := named(string(reference[1]))
		if err != nil {
			return err
		}
		to[name] = append(to[name], document)
	}
	return nil
}

func (d deploying) document(value any) (json.RawMessage, error) {
	resolved, err := d.resolve(value)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(resolved)
	if err != nil {
		return nil, err
	}
	_, err = ParsePolicy(text)
	return text, err
}

// resolve replaces CloudFormation's intrinsic functions in a value.
func (d deploying) resolve(value any) (any, error) {
	switch value := value.(type) {
	case []any:
		resolved := make([]any, len(value))
		for i, part := range value {
			var err error
			if resolved[i], err = d.resolve(part); err != nil {
				return nil, err
			}
		}
		return resolved, nil
	case map[string]any:
		if name, arguments, ok := function(value); ok {
			return d.call(name, arguments)
		}
		resolved := map[string]any{}
		for key, part := range value {
			var err error
			if resolved[key], err = d.resolve(part); err != nil {
				return nil, err
			}
		}
		return resolved, nil
	}
	return value, nil
}

func function(value map[string]any) (name string, arguments any, ok bool) {
	for name, arguments := range value {
		if len(value) == 1 && (name == "Ref" || strings.HasPrefix(name, "Fn::")) {
			return name, arguments, true
		}
	}
	return "", nil, false
}

func (d deploying) call(name string, arguments any) (string, error) {
	list, isList := arguments.([]any)
	text, isText := arguments.(string)
	switch {
	case name == "Ref" && isText:
		return d.ref(text)
	case name == "Fn::GetAtt" && isList && len(list) == 2:
		return d.attribute(fmt.Sprint(list[0]), fmt.Sprint(list[1]))
	case name == "Fn::Sub" && isText:
		var failure error
		replaced := regexp.MustCompile(`\$\{([\w:]+)\}`).ReplaceAllStringFunc(text, func(reference string) string {
			value, err := d.ref(reference[2 : len(reference)-1])
			if err != nil {
				failure = err
			}
			return value
		})
		return replaced, failure
	case name == "Fn::Join" && isList && len(list) == 2:
		resolved, err := d.resolve(list[1])
		parts, ok := resolved.([]any)
		if err != nil || !ok {
			return "", fmt.Errorf("join %v: %w", list[1], err)
		}
		var texts []string
		for _, part := range parts {
			texts = append(texts, fmt.Sprint(part))
		}
		return strings.Join(texts, fmt.Sprint(list[0])), nil
	}
	return "", fmt.Errorf("cannot resolve %s of %v", name, arguments)
}

func (d deploying) ref(name string) (string, error) {
	switch name {
	case "AWS::Partition":
		return d.Partition, nil
	case "AWS::Region":
		return d.Region, nil
	case "AWS::AccountId":
		return d.Account, nil
	}
	switch d.resources[name].Type {
	case "AWS::SNS::Topic", "AWS::SecretsManager::Secret":
		return d.arnOf(name)
	case "AWS::CloudFront::Distribution", "AWS::S3::Bucket", "AWS::DynamoDB::GlobalTable", "AWS::Lambda::Function",
		"AWS::ApiGateway::RestApi", "AWS::IAM::Role":
		return d.nameOf(name)
	}
	return "", fmt.Errorf("cannot resolve a reference to %s", name)
}

func (d deploying) attribute(id, attribute string) (string, error) {
	arn, err := d.arnOf(id)
	switch attribute {
	case "Arn":
		return arn, err
	case "StreamArn":
		// AWS names a stream after its creation time, so any time will do.
		return arn + "/stream/2026-01-01T00:00:00.000", err
	case "DefaultSecurityGroup":
		return "sg-default", nil
	}
	return "", fmt.Errorf("cannot resolve the attribute %s of %s", attribute, id)
}

// kinds maps CloudFormation resource types to their name properties and ARN formats.
var kinds = map[string]struct{ property, service, resource string }{
	"AWS::DynamoDB::GlobalTable":    {"TableName", "dynamodb", "table/%s"},
	"AWS::SQS::Queue":               {"QueueName", "sqs", "%s"},
	"AWS::S3::Bucket":               {"BucketName", "s3", "%s"},
	"AWS::Logs::LogGroup":           {"LogGroupName", "logs", "log-group:%s:*"},
	"AWS::SecretsManager::Secret":   {"Name", "secretsmanager", "secret:%s" + secretSuffix},
	"AWS::SNS::Topic":               {"TopicName", "sns", "%s"},
	"AWS::ECS::Cluster":             {"ClusterName", "ecs", "cluster/%s"},
	"AWS::IAM::Role":                {"RoleName", "iam", "role/%s"},
	"AWS::Lambda::Function":         {"FunctionName", "lambda", "function:%s"},
	"AWS::CloudFront::Distribution": {"", "cloudfront", "distribution/%s"},
	"AWS::Events::Rule":             {"Name", "events", "rule/%s"},
	// AWS gives each API a random name.
	"AWS::ApiGateway::RestApi": {"", "apigateway", "restapis/%s"},
}

// secretSuffix stands for the random suffix that Secrets Manager appends to a secret's name.
const secretSuffix = "-AbCdEf"

// nameOf returns a resource's name. If CloudFormation chooses the name, nameOf returns the
// resource's id in the template.
func (d deploying) nameOf(id string) (string, error) {
	r := d.resources[id]
	kind, known := kinds[r.Type]
	if !known {
		return "", fmt.Errorf("cannot resolve the name of %s, a %q", id, r.Type)
	}
	text := r.Properties[kind.property]
	if r.Type == "AWS::IAM::Role" {
		return WithoutHash(id), nil // this package names roles by id
	}
	if text == nil {
		return strings.ToLower(id), nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return "", err
	}
	resolved, err := d.resolve(value)
	return fmt.Sprint(resolved), err
}

func (d deploying) arnOf(id string) (string, error) {
	name, err := d.nameOf(id)
	if err != nil {
		return "", err
	}
	kind := kinds[d.resources[id].Type]
	return d.ARN(kind.service, fmt.Sprintf(kind.resource, name)), nil
}

func (p Place) ARN(service, resource string) string {
	region, account := p.Region, p.Account
	switch service {
	case "s3":
		region, account = "", ""
	case "cloudfront", "iam":
		region = ""
	}
	return strings.Join([]string{"arn", p.Partition, service, region, account, resource}, ":")
}

// WithoutHash removes CDK's unique suffix from a resource id.
func WithoutHash(id string) string {
	return regexp.MustCompile(`(.)[0-9A-F]{8}$`).ReplaceAllString(id, "$1")
}
