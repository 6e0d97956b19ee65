// Package consoletest tests the console in a browser, against a server started as users start it.
package consoletest
