package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

// newSecret makes the secret that seals page cursors.
func (s *stack) newSecret() awssecretsmanager.Secret {
	secret := awssecretsmanager.NewSecret(s.Stack, jsii.String("Secret"), &awssecretsmanager.SecretProps{
		SecretName:    jsii.String(s.name("secret")),
		Description:   jsii.String("Seals the page cursors of file lists"),
		RemovalPolicy: s.removal(),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			PasswordLength: jsii.Number(64), ExcludePunctuation: jsii.Bool(true),
		},
	})
	suppress(secret, "AwsSolutions-SMG4", "The secret protects nothing but the integrity of page cursors. Rotating it would break the lists that clients are in the middle of, and needs no schedule.")
	return secret
}

// secretName gives what the secret is found by: its ARN, or where references are
// not resolved its name.
func (s *stack) secretName() *string {
	if s.Endpoint != "" {
		return jsii.String(s.name("secret"))
	}
	return s.secret.SecretArn()
}
