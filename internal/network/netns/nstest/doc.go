// Package nstest gives tests a network namespace.
package nstest
