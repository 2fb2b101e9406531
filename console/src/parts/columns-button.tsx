import { Button, Menu } from '@mantine/core';
import { Columns3 } from 'lucide-react';
import { columnsToHide } from './data-table.tsx';
import type { Columns } from './data-table.tsx';
import { ICON } from './icon.ts';
import { useDensity, useHiddenColumns } from './table-look.ts';
import type { Density } from './table-look.ts';

const DENSITIES: Readonly<Record<Density, string>> = { normal: 'Normal rows', compact: 'Compact rows' };

/**
 * Hides and shows columns of a table, and sets how high the rows of all tables are. A phone has no columns: there, a row has two lines.
 */
export function ColumnsButton<T>({
  table,
  columns,
}: {
  /** The name of the table, as `DataTable` has it. */
  readonly table: string;
  readonly columns: Columns<T>;
}) {
  const [hidden, hide] = useHiddenColumns(table);
  const [density, setDensity] = useDensity();
  return (
    <Menu
      position="bottom-end"
      offset={4}
      shadow="md"
      closeOnItemClick={false}
      withinPortal={false}
      withInitialFocusPlaceholder={false}
    >
      <Menu.Target>
        <Button
          variant="default"
          size="xs"
          className="not-on-phone"
          leftSection={<Columns3 {...ICON} size={14} />}
        >
          Columns
        </Button>
      </Menu.Target>
      <Menu.Dropdown className="filter-control">
        {columnsToHide(columns).map(({ name }) => (
          <Menu.CheckboxItem
            key={name}
            checked={!hidden.includes(name)}
            onChange={(isShown) => hide(isShown ? hidden.filter((one) => one !== name) : [...hidden, name])}
          >
            {name}
          </Menu.CheckboxItem>
        ))}
        <div role="group" aria-label="Height of the rows">
          <Menu.Divider />
          <Menu.RadioGroup value={density} onChange={(next) => setDensity(next as Density)}>
            {Object.entries(DENSITIES).map(([value, text]) => (
              <Menu.RadioItem key={value} value={value}>
                {text}
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
        </div>
      </Menu.Dropdown>
    </Menu>
  );
}
