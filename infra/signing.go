package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/c2pa/signing"
)

// signs reports whether workers sign results with Content Credentials. models is true for workers
// with models, and false for workers with the preview engine (docs/provenance.md).
func (o options) signs(models bool) bool {
	return o.C2PA == signing.On || o.C2PA == signing.Auto && models
}

// newSigner creates the secret for the signing identity of this stack's workers. The first worker fills it.
//
// The secret has no fixed name, so that the next deployment can create another secret even if this
// one is left behind.
func (s *stack) newSigner() awssecretsmanager.Secret {
	secret := awssecretsmanager.NewSecret(s.Stack, jsii.String("Signer"), &awssecretsmanager.SecretProps{
		Description: jsii.String("Signs results of Cutroom, stage " + s.Stage +
			": certificates and private key in PEM, created by a worker"),
		RemovalPolicy:     s.removal(),
		SecretStringValue: awscdk.SecretValue_UnsafePlainText(jsii.String(secrets.Unset)),
	})
	suppress(secret, "AwsSolutions-SMG4", "A new identity is another signer for readers of results, so a "+
		"person has to decide when.")
	s.output("SignerSecretArn", "Secret with the identity that signs results", secret.SecretArn())
	return secret
}

func (s *stack) signing() map[string]*string {
	values := map[string]*string{}
	if s.C2PA != signing.Auto {
		values["CUTROOM_C2PA"] = jsii.String(s.C2PA)
	}
	if s.signer != nil {
		values["CUTROOM_C2PA_SECRET_ARN"] = s.signer.SecretArn()
	}
	return values
}

// signResults returns the permissions of workers that sign results. All workers read the identity,
// and the first worker creates it.
func (s *stack) signResults() []permission {
	if s.signer == nil {
		return nil
	}
	return []permission{{
		actions:   []string{"secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"},
		resources: []*string{s.signer.SecretArn()},
	}}
}
