// Package service has no code of its own. Here lives what callers meet: the media
// API, the inference gateway, the session server, the console's pages, and the
// worker that runs jobs. The same handlers serve one machine and AWS.
//
// A service imports services, engines, the domain and the platform. What it needs
// of a store it asks for by an interface, which an adapter satisfies.
//
// A new route goes into the service that answers it (api for media, gateway for
// inference); see the recipes in CONTRIBUTING.md.
package service
