package main

import (
	"path/filepath"

	"cutroom/shared/app/c2pa/signing"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/engine/enhance"
	"cutroom/shared/service/worker"
)

type dataFlag struct {
	Data string `env:"CUTROOM_DATA" default:".cutroom" help:"Data folder: records, files and keys (${env})."`
}

func (f dataFlag) database() string { return filepath.Join(f.Data, "cutroom.db") }

func (f dataFlag) blobFolder() string { return filepath.Join(f.Data, "blobs") }

type tiersFlag struct {
	Tiers string `env:"CUTROOM_TIERS" help:"Tiers file that replaces the built-in one (${env})."`
}

func (f tiersFlag) table() (credential.Tiers, error) { return setting.Tiers(f.Tiers) }

type signingFlags struct {
	C2PA             string `name:"c2pa" env:"CUTROOM_C2PA" default:"auto" help:"Add Content Credentials (C2PA), which state how a result was made: auto (only to results of an engine with models), on or off (${env})."`
	C2PALibrary      string `name:"c2pa-library" env:"CUTROOM_C2PA_LIBRARY" help:"Library libc2pa_c for signing; by default next to this program or from the system (${env})."`
	C2PACertificates string `name:"c2pa-certificates" env:"CUTROOM_C2PA_CERTIFICATES" help:"File with the signer's certificate chain in PEM, the signer's certificate first; by default generated and kept in the data folder (${env})."`
	C2PAKey          string `name:"c2pa-key" env:"CUTROOM_C2PA_KEY" help:"File with the signer's private key, in PEM (${env})."`
}

func (f signingFlags) settings() signing.Settings {
	return signing.Settings{Mode: f.C2PA, Library: f.C2PALibrary, Certificates: f.C2PACertificates, Key: f.C2PAKey}
}

type catalogFlags struct {
	Family  string `env:"CUTROOM_FAMILY" default:"${family}" help:"Name of the model family in paths and ids (${env})."`
	Catalog string `env:"CUTROOM_CATALOG" help:"Catalog file that replaces the built-in one (${env})."`
}

func (f catalogFlags) catalog() (*catalog.Catalog, error) {
	return setting.Catalog(f.Family, f.Catalog)
}

type enhanceFlags struct {
	EnhanceURL   string `env:"CUTROOM_ENHANCE_URL" help:"Base URL of a chat completions API that expands prompts; off if not set (${env})."`
	EnhanceModel string `env:"CUTROOM_ENHANCE_MODEL" help:"Model that expands prompts (${env})."`
	EnhanceKey   string `env:"CUTROOM_ENHANCE_KEY" help:"API key for the prompt model (${env})."`
}

func (f enhanceFlags) enhancer() (worker.Enhancer, error) {
	enhancer, err := enhance.FromSettings(f.EnhanceURL, f.EnhanceModel, f.EnhanceKey)
	if enhancer == nil {
		return nil, err // avoids a typed nil
	}
	return enhancer, err
}
