package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

// newSecret creates the secret that encrypts page cursors. Accounts' webhook secrets and the keys that sign client
// tokens are derived from it.
func (s *stack) newSecret() awssecretsmanager.Secret {
	secret := awssecretsmanager.NewSecret(s.Stack, jsii.String("Secret"), &awssecretsmanager.SecretProps{
		// Secrets Manager takes a name that ends with a hyphen and six characters, such as "-secret", for part of an ARN.
		SecretName:    jsii.String(s.name(s.SecretName)),
		Description:   jsii.String("Seals page cursors and signs webhooks"),
		RemovalPolicy: s.removal(),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			PasswordLength: jsii.Number(64), ExcludePunctuation: jsii.Bool(true),
		},
	})
	suppress(secret, "AwsSolutions-SMG4", "The secret seals page cursors and signs webhooks. Rotating it would "+
		"invalidate the cursors that clients hold and change the webhook secrets of every account, so a person has "+
		"to decide when.")
	return secret
}

// secretName returns the secret's name for programs: its ARN or, in a local AWS, which does not
// resolve references, its plain name.
func (s *stack) secretName() *string {
	if s.Endpoint != "" {
		return jsii.String(s.name(s.SecretName))
	}
	return s.secret.SecretArn()
}
