"""What all benchmark pages share: tasks, targets, records, pages."""
