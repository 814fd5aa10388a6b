// Where the parts of the machine are drawn.

export interface Box {
  level: number;
  index: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  width: number;
  height: number;
  cell: number;
  boxes: Box[];
  /** Top left corner of the cell of each node. */
  x: Float32Array;
  y: Float32Array;
}

export const GAP = 6;
/** Height of a name above a group. */
export const LABEL = 13;
/** Side of the largest cell of a node. */
export const LARGEST = 22;
