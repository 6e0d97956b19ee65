package main

import (
	"net"

	"cutroom/shared/console"
	"cutroom/shared/model"
)

// newConsole makes the console of this server, whose gateway listens beside it.
func newConsole(catalog *model.Catalog, maxUpload int64, gateway net.Addr) (*console.Console, error) {
	settings := console.Settings{
		BaseURL: "..", RealtimeURL: "../realtime", DocsURL: "../docs", MaxUpload: maxUpload, Models: console.Models(catalog),
	}
	port := 0
	if address, ok := gateway.(*net.TCPAddr); ok {
		port = address.Port
	}
	return console.New(console.Config{Settings: settings, InferencePort: port})
}
