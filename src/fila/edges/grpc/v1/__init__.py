"""Generated from spec/proto/ by `python spec/proto/make.py`. Do not edit."""
