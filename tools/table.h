/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tables whose columns are as wide as needed. */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct table - a table that is filled row by row
 * @titles: of the columns, NULL behind the last; ">" before one aligns it to the right
 * @num_cells: number of @cells
 * @cells: the strings, without the titles
 */
struct table {
	const char *const *titles;
	size_t num_cells;
	char **cells;
};

void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(struct table *table, const char *indent);

/* Room for a number with a unit. */
#define UNITS_SIZE	24

const char *units(char buf[UNITS_SIZE], uint64_t value, unsigned int base);

#endif /* TABLE_H */
