package main

import (
	"net"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/console"
)

// newConsole makes the console of this server, whose gateway listens beside it and
// which browsers reach by a URL of its own where one is given.
func newConsole(known *catalog.Catalog, maxUpload int64, gateway net.Addr, gatewayURL string) (*console.Console, error) {
	settings := console.Settings{
		BaseURL: "..", InferenceURL: gatewayURL, RealtimeURL: "../realtime", DocsURL: "../docs", MaxUpload: maxUpload, Models: console.Models(known),
	}
	port := 0
	if address, ok := gateway.(*net.TCPAddr); ok && gatewayURL == "" {
		port = address.Port
	}
	return console.New(console.Config{Settings: settings, InferencePort: port})
}
