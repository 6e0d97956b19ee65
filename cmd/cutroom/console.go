package main

import (
	"net"

	"cutroom/shared/console"
	"cutroom/shared/model"
)

// newConsole makes the console of this server, whose gateway listens beside it and
// which browsers reach by a URL of its own where one is given.
func newConsole(catalog *model.Catalog, maxUpload int64, gateway net.Addr, gatewayURL string) (*console.Console, error) {
	settings := console.Settings{
		BaseURL: "..", InferenceURL: gatewayURL, RealtimeURL: "../realtime", DocsURL: "../docs", MaxUpload: maxUpload, Models: console.Models(catalog),
	}
	port := 0
	if address, ok := gateway.(*net.TCPAddr); ok && gatewayURL == "" {
		port = address.Port
	}
	return console.New(console.Config{Settings: settings, InferencePort: port})
}
