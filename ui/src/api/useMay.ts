import { useQuery } from '@tanstack/react-query';
import { queries } from './queries';

/** Whether the signed-in person has a permission. Actions that they lack are not shown; the server refuses them in any case. */
export function useMay(): (permission: string) => boolean {
  const { data } = useQuery(queries.me());
  const permissions = data?.permissions ?? [];
  return (permission) => permissions.includes('admin:*') || permissions.includes(permission);
}
