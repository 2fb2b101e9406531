import { Text } from '@mantine/core';
import { useEffect, useId, useRef } from 'react';
import type { ReactNode } from 'react';
import { useNavigationType } from 'react-router';

/** `done`; `next`: the first that is not; `open`: a later one. */
export type StepState = 'done' | 'next' | 'open';

const SPOKEN: Readonly<Record<StepState, string>> = { done: 'Done', next: 'Next', open: 'To do' };

/** A step of the checklist, which opens and closes. */
export function Step({
  number,
  title,
  summary,
  state,
  isOpen,
  isTarget,
  onToggle,
  children,
}: {
  readonly number: number;
  readonly title: string;
  /** What is known about the step, beside its title. */
  readonly summary: string;
  readonly state: StepState;
  readonly isOpen: boolean;
  /** Whether the address names the step, which then takes the focus when a link has led to it. */
  readonly isTarget: boolean;
  readonly onToggle: () => void;
  readonly children: ReactNode;
}) {
  const body = useId();
  const head = useRef<HTMLButtonElement>(null);
  const arrival = useNavigationType();
  useEffect(() => {
    if (isTarget && arrival !== 'POP') head.current?.focus();
  }, [isTarget, arrival]);
  return (
    <li className="step" data-step={number}>
      <span className="mark" data-state={state} aria-hidden="true">
        {state === 'done' ? '✓' : number}
      </span>
      <h2 style={{ margin: 0, fontSize: 16, minWidth: 0 }}>
        <button
          ref={head}
          type="button"
          className="step-head"
          aria-expanded={isOpen}
          aria-controls={body}
          onClick={onToggle}
        >
          <span style={{ fontWeight: 600 }}>
            {title}
            <span className="spoken"> ({SPOKEN[state]})</span>
          </span>
          <Text component="span" size="sm" fw={400} className="quiet" ta="right">
            {summary}
          </Text>
        </button>
      </h2>
      <div id={body} className="step-body" hidden={!isOpen}>
        {isOpen && children}
      </div>
    </li>
  );
}
