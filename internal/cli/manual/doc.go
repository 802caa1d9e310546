// Package manual writes the manual pages from what the program itself goes by:
// the commands and their flags, the shape of a profile, the schema of a plan.
// Nothing of it is in the program: gen writes the pages into the repository.
//
// The pages are in the language of man(7), which groff and mandoc both read. A
// page is a function of its arguments.
package manual
