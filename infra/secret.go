package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

// newSecret makes the secret that seals page cursors, and that the secrets of
// accounts' webhooks are derived from.
func (s *stack) newSecret() awssecretsmanager.Secret {
	secret := awssecretsmanager.NewSecret(s.Stack, jsii.String("Secret"), &awssecretsmanager.SecretProps{
		SecretName:    jsii.String(s.name("secret")),
		Description:   jsii.String("Seals page cursors and signs webhooks"),
		RemovalPolicy: s.removal(),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			PasswordLength: jsii.Number(64), ExcludePunctuation: jsii.Bool(true),
		},
	})
	suppress(secret, "AwsSolutions-SMG4", "The secret seals page cursors and signs webhooks. Rotating it would break "+
		"the lists that clients are in the middle of, and change the secrets that receivers of webhooks hold, so that it "+
		"is a person's to decide.")
	return secret
}

// secretName returns what the secret is found by: its ARN, or where references are
// not resolved its name.
func (s *stack) secretName() *string {
	if s.Endpoint != "" {
		return jsii.String(s.name("secret"))
	}
	return s.secret.SecretArn()
}
