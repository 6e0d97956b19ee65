// Package consoletest tests the console in a browser, against a server started the way users start it.
package consoletest
