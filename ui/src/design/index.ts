/** The design system. Screens use these parts and the tokens, and nothing else that has colours. */
export { AgentBadge, Badge, StatusDot, type Tone } from './Badge';
export { Button, IconButton, LinkButton } from './Button';
export { CopyButton, CopyTextButton } from './CopyButton';
export { cx } from './cx';
export { Dialog } from './Dialog';
export { Elapsed } from './Elapsed';
export { EmptyState, ErrorNote, Notice, ProgressBar, Skeleton } from './Feedback';
export { firstCharacter } from './firstCharacter';
export { FilterChips, type FilterChip } from './FilterChips';
export { CheckField, SelectField, TextArea, TextField } from './Field';
export { HUES, hueOf, type Hue } from './hue';
export { Menu, type MenuItem } from './Menu';
export { Card, Facts, Page } from './Page';
export { Segmented } from './Segmented';
export { Table, type Column, type Sort } from './Table';
export { Tabs, type Tab } from './Tabs';
export { Time } from './Time';
