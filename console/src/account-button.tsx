import { Button, Text } from '@mantine/core';
import type { ButtonProps } from '@mantine/core';
import type { ComponentPropsWithRef } from 'react';

/** The button that opens the menu of the account. */
export function AccountButton({
  name,
  ...button
}: { readonly name: string } & ButtonProps & Omit<ComponentPropsWithRef<'button'>, keyof ButtonProps>) {
  return (
    <Button
      {...button}
      variant="default"
      size="xs"
      maw={220}
      rightSection={<span aria-hidden="true">▾</span>}
    >
      <Text span inherit truncate>
        {name}
      </Text>
    </Button>
  );
}
