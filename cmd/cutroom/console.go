package main

import (
	"net"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/console"
)

// newConsole builds the console. If gatewayURL is empty, browsers use the page's host with the gateway's port.
func newConsole(known *catalog.Catalog, maxUpload int64, gateway net.Addr,
	gatewayURL string) (*console.Console, error) {
	settings := console.Settings{
		BaseURL: "..", InferenceURL: gatewayURL, RealtimeURL: "../realtime", DocsURL: "../docs", MaxUpload: maxUpload,
		Currency: known.Currency, Models: console.Models(known),
	}
	port := 0
	if address, ok := gateway.(*net.TCPAddr); ok && gatewayURL == "" {
		port = address.Port
	}
	return console.New(console.Config{Settings: settings, InferencePort: port})
}
