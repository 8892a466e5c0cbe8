// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tables, and numbers with units. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "tool.h"

/**
 * table_cell() - add a cell behind the last
 * @table: the table
 * @format: of printf()
 */
void table_cell(struct table *table, const char *format, ...)
{
	va_list args;

	table->cells = tool_grow(table->cells, table->num_cells,
				 sizeof(*table->cells));
	va_start(args, format);
	table->cells[table->num_cells++] = text_vprintf(format, args);
	va_end(args);
}

static size_t column_width(const struct table *table, size_t column, size_t columns)
{
	const char *title = table->titles[column];
	size_t width = strlen(title) - (*title == '>'), i;

	for (i = column; i < table->num_cells; i += columns)
		if (strlen(table->cells[i]) > width)
			width = strlen(table->cells[i]);
	return width;
}

static void print_cell(const char *cell, enum text_color color, size_t width,
		       bool right, bool last)
{
	if (right)
		printf("%*s", (int)(width - strlen(cell)), "");
	text_color(color, cell, right || last ? 0 : (int)width);
	fputs(last ? "\n" : "  ", stdout);
}

/**
 * table_print() - print a table, and free its cells
 * @table: the table
 * @indent: is before each line
 */
void table_print(struct table *table, const char *indent)
{
	size_t columns = 0, *widths, i, column;

	while (table->titles[columns])
		columns++;
	widths = tool_alloc(columns, sizeof(*widths));
	fputs(indent, stdout);
	for (i = 0; i < columns; i++) {
		bool right = table->titles[i][0] == '>';

		widths[i] = column_width(table, i, columns);
		print_cell(table->titles[i] + right, TEXT_BOLD, widths[i], right,
			   i == columns - 1);
	}
	for (i = 0; columns && i < table->num_cells; i++) {
		column = i % columns;
		if (!column)
			fputs(indent, stdout);
		print_cell(table->cells[i], TEXT_PLAIN, widths[column],
			   table->titles[column][0] == '>', column == columns - 1);
		free(table->cells[i]);
	}
	free(table->cells);
	free(widths);
	table->cells = NULL;
	table->num_cells = 0;
}

/**
 * units() - write a number with at most four digits
 * @buf: gets it
 * @value: the number
 * @base: 1024 or 1000, what a K is
 *
 * Return: @buf.
 */
const char *units(char buf[UNITS_SIZE], uint64_t value, unsigned int base)
{
	static const char letters[] = "KMGTPE";
	double scaled = value;
	int i = -1;

	if (value < 10000) {
		snprintf(buf, UNITS_SIZE, "%" PRIu64, value);
		return buf;
	}
	do {
		scaled /= base;
		i++;
	} while (scaled >= 999.5 && letters[i + 1]);
	snprintf(buf, UNITS_SIZE, scaled < 99.95 ? "%.1f%c" : "%.0f%c", scaled,
		 letters[i]);
	return buf;
}
