"""What models and strangers wrote, as a page may show it: nothing of it is markup, nothing of it loads."""
