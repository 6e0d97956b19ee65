package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
)

// Paths of the deployer's files "catalog" and "tiers". Functions read them as JSON from /opt, where
// layers are mounted.
const (
	functionFiles  = "/opt/%s.json"
	containerFiles = "/etc/cutroom/%s.yaml"
)

// newSettings returns the functions' layer with the deployer's files, or nil if only built-in files are used.
func (s *stack) newSettings() (awslambda.LayerVersion, error) {
	if s.Catalog == "" && s.Tiers == "" {
		return nil, nil
	}
	folder, err := os.MkdirTemp("", "settings-*")
	if err != nil {
		return nil, err
	}
	// The folder is not needed later, because CDK copies it when it creates the layer.
	defer os.RemoveAll(folder)
	for _, file := range []struct {
		name, source string
		inJSON       func(source []byte) ([]byte, error)
	}{{"catalog", s.Catalog, s.catalogInJSON}, {"tiers", s.Tiers, tiersInJSON}} {
		if file.source == "" {
			continue
		}
		text, err := os.ReadFile(file.source)
		if err != nil {
			return nil, fmt.Errorf("read the settings: %w", err)
		}
		if text, err = file.inJSON(text); err != nil {
			return nil, fmt.Errorf("read the settings: %s: %w", file.source, err)
		}
		if err := os.WriteFile(filepath.Join(folder, file.name+".json"), text, 0o644); err != nil {
			return nil, fmt.Errorf("write the settings: %w", err)
		}
	}
	return awslambda.NewLayerVersion(s.Stack, jsii.String("Settings"), &awslambda.LayerVersionProps{
		Code:        awslambda.Code_FromAsset(jsii.String(folder), nil),
		Description: jsii.String("The deployer's catalog and tiers of Cutroom"),
	}), nil
}

// catalogInJSON converts a catalog to JSON for functions. It checks the catalog, so that an invalid
// catalog stops the deployment and not the functions.
func (s *stack) catalogInJSON(source []byte) ([]byte, error) {
	if _, err := catalog.Parse(source, s.Family); err != nil {
		return nil, err
	}
	return catalog.JSON(source)
}

func tiersInJSON(source []byte) ([]byte, error) {
	tiers, err := credential.ParseTiers(source)
	if err != nil {
		return nil, err
	}
	return tiers.JSON()
}
