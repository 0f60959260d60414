"""The command `stakes`: it parses, calls and shows; all else is the library's."""
