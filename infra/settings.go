package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// The names of the deployer's files. Programs read them in /opt in a function, where
// layers are mounted, and in /etc/cutroom in a container.
const (
	catalogFile = "catalog.yaml"
	tiersFile   = "tiers.yaml"
)

// newSettings returns the functions' layer with the deployer's files; nil if only
// built-in files are used.
func (s *stack) newSettings() (awslambda.LayerVersion, error) {
	if s.Catalog == "" && s.Tiers == "" {
		return nil, nil
	}
	folder, err := os.MkdirTemp("", "settings-*")
	if err != nil {
		return nil, err
	}
	// CDK copies the folder when the layer is created.
	defer os.RemoveAll(folder)
	for name, source := range map[string]string{catalogFile: s.Catalog, tiersFile: s.Tiers} {
		if source == "" {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, fmt.Errorf("read the settings: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return nil, fmt.Errorf("copy the settings: %w", err)
		}
	}
	return awslambda.NewLayerVersion(s.Stack, jsii.String("Settings"), &awslambda.LayerVersionProps{
		Code:        awslambda.Code_FromAsset(jsii.String(folder), nil),
		Description: jsii.String("The deployer's catalog and tiers of Cutroom"),
	}), nil
}
