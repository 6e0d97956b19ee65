// Package service contains the packages that serve clients: the media API, the inference gateway,
// the session server, the console's pages, and the worker that runs jobs. The same handlers serve
// one machine and AWS.
//
// A service imports services, engines, the domain and the platform. It declares interfaces for its
// stores, which adapters implement.
//
// A new route goes into the service that answers it (api for media, gateway for inference); see the
// recipes in CONTRIBUTING.md.
package service
