package main

import (
	"path/filepath"

	"cutroom/shared/app/records"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/engine/enhance"
	"cutroom/shared/service/worker"
)

// dataFlag has the settings of every command that uses the data folder.
type dataFlag struct {
	Data    string `env:"CUTROOM_DATA" default:".cutroom" help:"Folder of everything that is kept (${env})."`
	Records string `env:"CUTROOM_RECORDS" default:"sqlite" help:"What keeps the records: sqlite, a database in that folder (${env})."`
}

// database returns the database of the data folder, which need not exist yet.
func (f dataFlag) database() (records.Database, error) { return records.Find(f.Records, f.Data) }

// blobFolder returns the folder of the blobs.
func (f dataFlag) blobFolder() string { return filepath.Join(f.Data, "blobs") }

// tiersFlag is the table of tiers.
type tiersFlag struct {
	Tiers string `env:"CUTROOM_TIERS" help:"File of the tiers, in place of the built-in one (${env})."`
}

func (f tiersFlag) table() (credential.Tiers, error) { return setting.Tiers(f.Tiers) }

// catalogFlags choose the models.
type catalogFlags struct {
	Family  string `env:"CUTROOM_FAMILY" default:"${family}" help:"Name of the model family in paths and ids (${env})."`
	Catalog string `env:"CUTROOM_CATALOG" help:"File of the catalog, in place of the built-in one (${env})."`
}

func (f catalogFlags) catalog() (*catalog.Catalog, error) {
	return setting.Catalog(f.Family, f.Catalog)
}

// enhanceFlags choose the chat model that expands prompts.
type enhanceFlags struct {
	EnhanceURL   string `env:"CUTROOM_ENHANCE_URL" help:"Base URL of a chat completions API that expands prompts; none expands none (${env})."`
	EnhanceModel string `env:"CUTROOM_ENHANCE_MODEL" help:"Model that expands prompts (${env})."`
	EnhanceKey   string `env:"CUTROOM_ENHANCE_KEY" help:"API key for it (${env})."`
}

// enhancer returns what expands prompts; nil if nothing is set.
func (f enhanceFlags) enhancer() (worker.Enhancer, error) {
	enhancer, err := enhance.FromSettings(f.EnhanceURL, f.EnhanceModel, f.EnhanceKey)
	if enhancer == nil {
		return nil, err // not a typed nil
	}
	return enhancer, err
}
